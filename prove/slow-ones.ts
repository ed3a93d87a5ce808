// A process of its own for connections that send a byte at a time: what it costs to be slow is not to be taken for what the
// service does to those who are not. Half of them never finish their headers, half never their bodies; one that is cut off
// comes back. Arguments: port, token, number. Tells its parent how many are open, were opened, were cut off.

import { connect, type Socket } from 'node:net'

const DRIP_MS = 2000
const TELL_MS = 50
const ACCEPTED_BYTES = 1

const [port = '0', token = '', count = '0'] = process.argv.slice(2)
const head = `POST /v1/inbox/events HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${token}\r\nContent-Type: application/json\r\n`
const heads = [`${head}X-Slow: `, `${head}Content-Length: 10000\r\n\r\n{"text":"`] as const
const sockets = new Set<Socket>()
let opened = 0
let cutOff = 0

function add(n: number): void {
  const socket = connect({ host: '127.0.0.1', port: Number(port) })
  socket.on('error', () => {})
  socket.on('connect', () => {
    opened += 1
    sockets.add(socket)
    socket.write(heads[n % 2]!)
  })
  socket.on('close', () => {
    if (!sockets.delete(socket)) return
    if (socket.bytesRead >= ACCEPTED_BYTES) cutOff += 1
    // Not all of them at once: those of a real attack do not come in step.
    setTimeout(() => add(n), Math.random() * 500)
  })
  socket.resume()
}

for (let n = 0; n < Number(count); n += 1) setTimeout(() => add(n), Math.random() * 2000)
setInterval(() => {
  for (const socket of sockets) if (Math.random() < 0.5) socket.write('x')
}, DRIP_MS / 2)
setInterval(() => process.send?.({ open: sockets.size, opened, cutOff }), TELL_MS)
process.on('disconnect', () => process.exit(0))
