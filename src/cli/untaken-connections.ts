// Closes the connections that a worker was given and did not live to take.
//
// node:cluster keeps its copy of a connection open until the worker replies that it has taken it. When the worker dies first,
// no reply comes and the copy stays open (nodejs/node#21746): nobody answers, and the client waits until it gives up. A
// client whose connection is closed can send again at once.
//
// Node offers no hook for this: the messages below are internal to Node 26. test/flow/workers.test.ts would notice a change.

import type { Worker } from 'node:cluster'

interface ClusterMessage {
  readonly act?: string
  readonly seq: number
}
interface Handle {
  close(): void
}

export function closeUntakenConnections(worker: Worker): void {
  const untaken = new Map<number, Handle>()
  const child = worker.process
  const send = child.send.bind(child) as (...args: readonly unknown[]) => boolean
  child.send = (...args: readonly unknown[]): boolean => {
    const [message, handle] = args as [ClusterMessage, Handle?]
    if (message.act === 'newconn' && handle) untaken.set(message.seq, handle)
    return send(...args)
  }
  child.on('internalMessage', ({ ack }: { readonly ack?: number }) => {
    if (ack !== undefined) untaken.delete(ack)
  })
  // On 'exit' replies of the worker may be left to read; 'disconnect' does not come while a connection is untaken.
  child.on('close', () => {
    for (const handle of untaken.values()) handle.close()
  })
}
