import type { StandardSchemaV1 } from '@standard-schema/spec'

/** Any Standard Schema: zod, valibot, arktype… `In` is what may be sent, `Out` is what arrives. */
export type Schema<In = any, Out = In> = StandardSchemaV1<In, Out>
