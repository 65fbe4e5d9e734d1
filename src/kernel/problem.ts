/** Something wrong with a definition (or, as a hint, worth knowing about it). */
export interface Problem {
  code: string
  where: string
  message: string
}
