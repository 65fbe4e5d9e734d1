/** Far more than any store takes: who sends more has lost itself, and is not listened to until the memory is full. */
const bytesMax = 60_000_000

/**
 * As `fetch`, but it follows no redirect: to an address of somebody else `fetch` sends all but `authorization`, and keys stand in other headers
 * too; and what was asked is as private. And it reads no answer that has no end.
 */
export async function fetchHere(...[input, init]: Parameters<typeof fetch>): Promise<Response> {
  const response = await fetch(input, { ...init, redirect: 'manual' })
  const location = response.headers.get('location')
  if (response.status < 300 || response.status > 399 || location === null) return bounded(response)
  await response.body?.cancel()
  const from = input instanceof Request ? input.url : String(input)
  const to = URL.canParse(location, from) ? new URL(location, from).origin : 'another address'
  throw new Error(`the server sends the call on to ${to}, and keys are sent nowhere else: name that address itself if it is meant`)
}

/** A response whose body fails where it gets too long. Of a stream, which is read line by line and counted where it is listened to, only a line may. */
function bounded(response: Response): Response {
  if (response.body === null) return response
  const inLines = response.headers.get('content-type')?.includes('event-stream') === true
  let bytes = 0
  const counting = new TransformStream<Uint8Array, Uint8Array>({
    transform: (piece, to) => {
      const lineEnd = inLines ? piece.lastIndexOf(10) : -1
      bytes = lineEnd === -1 ? bytes + piece.length : piece.length - lineEnd - 1
      if (bytes > bytesMax) throw new Error(`the answer has more than ${bytesMax} bytes`)
      to.enqueue(piece)
    },
  })
  return new Response(response.body.pipeThrough(counting), response)
}
