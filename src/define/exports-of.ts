/** What a module exports. What CommonJS that was compiled exports stands inside its default. */
export function exportsOf(module: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  const inner = module['default']
  const isNested = typeof inner === 'object' && inner !== null && '__esModule' in inner
  return isNested ? (inner as Readonly<Record<string, unknown>>) : module
}
