// Signals that a client disconnected, so that a read for it can end.

import type { Socket } from 'node:net'

const signals = new WeakMap<Socket, AbortSignal>()

/** One listener serves all requests of a connection, however many are pipelined. */
export function disconnectSignal(socket: Socket): AbortSignal {
  if (socket.destroyed) return AbortSignal.abort()
  const known = signals.get(socket)
  if (known) return known
  const controller = new AbortController()
  socket.once('close', () => controller.abort())
  signals.set(socket, controller.signal)
  return controller.signal
}
