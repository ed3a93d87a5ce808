// The upper bound: bare node:http that reads a body, parses the JSON and answers a constant. It stores nothing.
// Promises: listens on a free loopback port, which it sends to its parent over IPC; ends with its parent.

import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

const ANSWER = Buffer.from('{"ok":true,"id":1}')
const HEADERS = { 'content-type': 'application/json', 'content-length': ANSWER.length }

const server = createServer((request, response) => {
  const chunks: Buffer[] = []
  request.on('data', (chunk: Buffer) => chunks.push(chunk))
  request.on('end', () => {
    JSON.parse((chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks)).toString())
    response.writeHead(200, HEADERS).end(ANSWER)
  })
})

process.on('disconnect', () => process.exit(0))
server.listen(0, '127.0.0.1', () => process.send?.({ port: (server.address() as AddressInfo).port }))
