/**
 * As `fetch`, but it follows no redirect: to an address of somebody else `fetch` sends all but `authorization`, and keys stand in other headers
 * too; and what was asked is as private.
 */
export async function fetchHere(...[input, init]: Parameters<typeof fetch>): Promise<Response> {
  const response = await fetch(input, { ...init, redirect: 'manual' })
  const location = response.headers.get('location')
  if (response.status < 300 || response.status > 399 || location === null) return response
  await response.body?.cancel()
  const from = input instanceof Request ? input.url : String(input)
  const to = URL.canParse(location, from) ? new URL(location, from).origin : 'another address'
  throw new Error(`the server sends the call on to ${to}, and keys are sent nowhere else: name that address itself if it is meant`)
}
