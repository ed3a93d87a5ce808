// A sender in a process of its own, for tests: says "ready", waits for a line on stdin, sends all its bodies at once on
// connections of their own, and prints the answers as one line of JSON.

import { text } from 'node:stream/consumers'
import { post } from './load.ts'

interface Job {
  readonly port: number
  readonly token: string
  readonly bodies: readonly string[]
}

process.stdout.write('ready\n')
const { port, token, bodies } = JSON.parse(await text(process.stdin)) as Job
const answers = await Promise.all(bodies.map((body) => post(port, token, body)))
process.stdout.write(`${JSON.stringify(answers.map(({ status, json }) => ({ status, ...json })))}\n`)
