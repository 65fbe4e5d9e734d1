import type { Definition, Provided } from 'tutti'
import * as context from '../planted/context.js'
import { counting } from '../planted/counter.js'
import * as identity from '../planted/identity.js'
import * as resumes from '../planted/resumes.js'

/** A bug in the code of a user, made anew for each schedule. */
export interface UserMutant {
  readonly name: string
  readonly make: () => Definition
  readonly resources?: () => readonly Provided[]
}

export const userMutants: readonly UserMutant[] = [
  { name: 'identity cross-talk', make: () => identity.planted({ equal: false }) },
  { name: 'identity cross-talk between equals', make: () => identity.planted({ equal: true }) },
  { name: 'a context that everybody writes to', make: context.planted },
  { name: 'resumes that look before they write', make: resumes.planted, resources: resumes.resources },
  { name: 'a sum across an await', make: () => counting('across an await') },
  { name: 'a sum across a step', make: () => counting('across a step') },
]
