// A processor in a process of its own, to be killed. Appends a line to a file when a handler starts and when it is done, in one
// write each, so that the file has the order of all workers. Stops at SIGTERM. Arguments: address, token, file, name.

import { appendFileSync } from 'node:fs'
import { setTimeout as pause } from 'node:timers/promises'
import { Intray, LeaseLost } from '../../../kits/typescript/src/intray.ts'

const [url = '', token = '', file = '', name = ''] = process.argv.slice(2)
const say = (what: string, id: number): void => appendFileSync(file, `${what} ${id} ${name}\n`)

const stop = new AbortController()
process.once('SIGTERM', () => stop.abort())

const onProblem = (error: Error): void => {
  if (error instanceof LeaseLost) say('lost', error.eventId)
  else process.stderr.write(`${error}\n`)
}
const intray = new Intray({ url, token, outbox: 'none', onProblem })
await intray.work(
  async ({ id }) => {
    say('start', id)
    await pause(5)
    say('end', id)
  },
  { leaseS: 3, concurrency: 3, signal: stop.signal },
)
await intray.close()
