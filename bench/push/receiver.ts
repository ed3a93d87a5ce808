// A receiver of pushes that answers at once: reads requests by their Content-Length and counts them. It parses nothing else, so that its
// own cost is small beside that of the service.
// Promises: listens on a free loopback port, which it sends to its parent over IPC; sends the count when it is asked; ends with its parent.

import { createServer, type AddressInfo } from 'node:net'

const ANSWER = Buffer.from('HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n')
const END = Buffer.from('\r\n\r\n')

let count = 0

const server = createServer((socket) => {
  socket.setNoDelay(true)
  socket.on('error', () => {})
  let held: Buffer = Buffer.alloc(0)
  socket.on('data', (chunk: Buffer) => {
    held = held.length === 0 ? chunk : Buffer.concat([held, chunk])
    for (;;) {
      const end = held.indexOf(END)
      if (end === -1) return
      const length = Number(/content-length: (\d+)/i.exec(held.toString('latin1', 0, end))?.[1])
      const size = end + END.length + length
      if (held.length < size) return
      held = held.subarray(size)
      count += 1
      socket.write(ANSWER)
    }
  })
})

process.on('disconnect', () => process.exit(0))
process.on('message', () => process.send?.({ count }))
server.listen(0, '127.0.0.1', () => process.send?.({ port: (server.address() as AddressInfo).port }))
