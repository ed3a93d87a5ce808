// Whether anybody listens on a port.

import net from 'node:net'
import { until } from './until.ts'

export function refusesConnections(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = net.connect({ port, host: '127.0.0.1' })
    socket.once('connect', () => {
      socket.destroy()
      resolve(false)
    })
    socket.once('error', (error: NodeJS.ErrnoException) => resolve(error.code === 'ECONNREFUSED'))
  })
}

export function untilClosed(port: number): Promise<boolean> {
  return until(`port ${port} is closed`, () => refusesConnections(port))
}
