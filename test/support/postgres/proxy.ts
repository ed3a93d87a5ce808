// A way to PostgreSQL that can be cut: before a statement is passed on, right after, or when its answer comes back.

import { once } from 'node:events'
import net from 'node:net'

export type CutPoint =
  /** The server never sees the statement. */
  | 'before'
  /** The server sees it; whether it finishes before it notices is its own affair. */
  | 'sent'
  /** The server has committed and answers; the answer is lost. */
  | 'answered'

export interface Proxy {
  readonly port: number
  /** Asked for each statement that matches; null lets it pass. */
  cutAt: () => CutPoint | null
  /** Called in the moment of a cut. */
  onCut: () => void
  readonly cuts: Record<CutPoint, number>
  /** Nobody gets through, and whoever was is cut off. */
  refuse(isRefusing: boolean): void
  close(): Promise<void>
}

/** Watches for messages that contain this text: the name of a prepared statement, or a piece of SQL. */
export async function startProxy(serverPort: number, watched: string): Promise<Proxy> {
  const pairs = new Set<() => void>()
  const cuts: Record<CutPoint, number> = { before: 0, sent: 0, answered: 0 }
  let isRefusing = false
  const proxy: Pick<Proxy, 'cutAt' | 'onCut'> = { cutAt: () => null, onCut: () => {} }
  const listener = net.createServer((client) => {
    if (isRefusing) {
      client.destroy()
      return
    }
    const server = net.connect(serverPort, '127.0.0.1')
    const cut = () => {
      client.destroy()
      server.destroy()
    }
    pairs.add(cut)
    let isArmed = false
    const end = () => {
      pairs.delete(cut)
      cut()
    }
    for (const socket of [client, server]) socket.on('error', end).on('close', end)
    client.on('data', (chunk: Buffer) => {
      const point = chunk.includes(watched) ? proxy.cutAt() : null
      if (point === null) {
        server.write(chunk)
        return
      }
      cuts[point] += 1
      if (point === 'before') {
        proxy.onCut()
        cut()
      } else if (point === 'answered') server.write(chunk, () => (isArmed = true))
      else {
        server.write(chunk, () => {
          proxy.onCut()
          client.destroy()
        })
      }
    })
    server.on('data', (chunk: Buffer) => {
      if (isArmed) {
        isArmed = false
        proxy.onCut()
        cut()
      } else client.write(chunk)
    })
  })
  listener.listen(0, '127.0.0.1')
  await once(listener, 'listening')
  return Object.assign(proxy, {
    port: (listener.address() as net.AddressInfo).port,
    cuts,
    refuse: (refusing: boolean) => {
      isRefusing = refusing
      if (refusing) for (const cut of pairs) cut()
    },
    close: async () => {
      for (const cut of pairs) cut()
      listener.close()
      await once(listener, 'close')
    },
  })
}

/** The same database through the proxy. */
export function through(proxy: Proxy, url: string): string {
  return url.replace(/:\d+\//, `:${proxy.port}/`)
}
