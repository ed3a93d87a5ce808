// Signals when the client of a call disconnects, so that work for it can end.

import type { Call } from '../call.ts'

export interface ClientWatch {
  readonly disconnected: AbortSignal
  unwatch(): void
}

/** `halfClosed`: a client that closed its sending side counts as disconnected. */
export function watchClient({ req }: Call, { halfClosed }: { readonly halfClosed: boolean }): ClientWatch {
  const { socket } = req
  const controller = new AbortController()
  const abort = () => controller.abort()
  if (socket.destroyed || (halfClosed && socket.readableEnded)) abort()
  socket.once('close', abort)
  if (halfClosed) socket.once('end', abort)
  return {
    disconnected: controller.signal,
    unwatch: () => {
      socket.off('close', abort)
      socket.off('end', abort)
    },
  }
}
