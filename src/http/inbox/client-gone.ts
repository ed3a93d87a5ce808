// Tells when the client of a call is gone, so that work for it can end.

import type { Call } from '../call.ts'

export interface ClientWatch {
  readonly gone: AbortSignal
  forget(): void
}

/** `onEnd`: a client that closes only its sending side counts as gone, too. */
export function watchClient({ req }: Call, { onEnd }: { readonly onEnd: boolean }): ClientWatch {
  const { socket } = req
  const controller = new AbortController()
  const leave = () => controller.abort()
  if (socket.destroyed || (onEnd && socket.readableEnded)) leave()
  socket.once('close', leave)
  if (onEnd) socket.once('end', leave)
  return {
    gone: controller.signal,
    forget: () => {
      socket.off('close', leave)
      socket.off('end', leave)
    },
  }
}
