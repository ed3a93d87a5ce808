// A sender in a process of its own, to be killed. Prints each message that send() accepted: its source_ref, then its channel_ref.
// Arguments: address, token, outbox (or `memory`: a queue in memory, the control), name, hours the clock is ahead, what to do.

import { writeSync } from 'node:fs'
import { Intray } from '../../../kits/typescript/src/intray.ts'

const [url = '', token = '', outbox = '', name = '', hours = '0', task = 'send'] = process.argv.slice(2)
/** Messages that wait to be accepted at once. */
const AT_ONCE = 4
const CHANNELS = 5

const aheadMs = Number(hours) * 3_600_000
const intray = new Intray({
  url,
  token,
  outbox: outbox === 'memory' ? 'none' : outbox,
  now: () => Date.now() + aheadMs,
  onProblem: (error) => process.stderr.write(`${error}\n`),
})

const queue: object[] = []
async function sendFromMemory(message: object): Promise<void> {
  queue.push(message)
}

/** Each byte of stdin allows one more message. */
let allowed = 0
const onAllowed: (() => void)[] = []
if (task === 'send') {
  process.stdin.on('data', (bytes: Buffer) => {
    allowed += bytes.length
    for (const resolve of onAllowed.splice(0)) resolve()
  })
}

let count = 0
async function sendForEver(): Promise<never> {
  for (;;) {
    while (allowed === 0) await new Promise<void>((resolve) => onAllowed.push(resolve))
    allowed -= 1
    const n = ++count
    const channel = n % 3 === 0 ? null : `channel-${n % CHANNELS}`
    const message = {
      source_ref: `${name}:${n}`,
      ...(channel && { channel_ref: channel }),
      message: { text: `number ${n}` },
    }
    await (outbox === 'memory' ? sendFromMemory(message) : intray.send(message))
    // Whole, and before anything else happens.
    writeSync(1, `${message.source_ref} ${channel ?? '-'}\n`)
  }
}

if (task === 'send') {
  await Promise.all(Array.from({ length: AT_ONCE }, sendForEver))
} else {
  let left = await intray.flush()
  while (left.waiting > 0) {
    await new Promise((resolve) => setTimeout(resolve, 20))
    left = await intray.flush()
  }
  await intray.close()
  writeSync(1, `left ${left.waiting} ${left.refused}\n`)
}
