// Closes connections that were passed to a worker which died before it accepted them.
//
// node:cluster keeps its copy of a connection open until the worker confirms that it accepted it. If the worker dies first,
// the copy stays open (nodejs/node#21746) and the client waits until its timeout. A client whose connection is closed can
// send again at once.
//
// The messages below are internal to Node 26, which has no hook for this. test/flow/workers.test.ts detects a change.

import type { Worker } from 'node:cluster'

interface ClusterMessage {
  readonly act?: string
  readonly seq: number
}
interface Handle {
  close(): void
}

export function closeUnacceptedConnections(worker: Worker): void {
  const unaccepted = new Map<number, Handle>()
  const child = worker.process
  const send = child.send.bind(child) as (...args: readonly unknown[]) => boolean
  child.send = (...args: readonly unknown[]): boolean => {
    const [message, handle] = args as [ClusterMessage, Handle?]
    if (message.act === 'newconn' && handle) unaccepted.set(message.seq, handle)
    return send(...args)
  }
  child.on('internalMessage', ({ ack }: { readonly ack?: number }) => {
    if (ack !== undefined) unaccepted.delete(ack)
  })
  // At 'exit' replies of the worker may be unread; 'disconnect' does not occur while a connection is not accepted.
  child.on('close', () => {
    for (const handle of unaccepted.values()) handle.close()
  })
}
