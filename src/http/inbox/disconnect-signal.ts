// Signals that a client disconnected, so that a read for it can end.

import type { Socket } from 'node:net'

/** A client may close its sending side only, and then gets its answer, unless that takes longer than this. */
const HALF_CLOSED_MS = 1000

const signals = new WeakMap<Socket, AbortSignal>()

/** One listener serves all requests of a connection, however many are pipelined. */
export function disconnectSignal(socket: Socket): AbortSignal {
  if (socket.destroyed) return AbortSignal.abort()
  const known = signals.get(socket)
  if (known) return known
  const controller = new AbortController()
  const abort = () => controller.abort()
  const abortLater = () => setTimeout(abort, HALF_CLOSED_MS).unref()
  socket.once('close', abort)
  if (socket.readableEnded) abortLater()
  else socket.once('end', abortLater)
  signals.set(socket, controller.signal)
  return controller.signal
}
