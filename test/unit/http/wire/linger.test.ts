import assert from 'node:assert/strict'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { PassThrough } from 'node:stream'
import { type TestContext, test } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import { endAndLinger } from '../../../../src/http/wire/body.ts'

/** An answered request whose body goes on, and an answer that notes when it ends. */
function answered(t: TestContext) {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const body = new PassThrough()
  const req = Object.assign(body, { method: 'POST' }) as unknown as IncomingMessage
  const noted = { written: '', ended: false }
  const res = {
    write: (text: string) => (noted.written += text),
    end: () => (noted.ended = true),
    get writableEnded() {
      return noted.ended
    },
  }
  endAndLinger(req, res as unknown as ServerResponse, 'too large')
  const send = async (bytes: number) => {
    body.write(Buffer.alloc(bytes))
    await turn()
  }
  return { body, noted, send }
}

test('an early answer is written at once, and lasts while the client goes on sending', async (t) => {
  const { noted, send } = answered(t)
  assert.equal(noted.written, 'too large')
  for (let n = 0; n < 10; n++) {
    await send(1)
    t.mock.timers.tick(1999)
    assert.equal(noted.ended, false, `after ${n} pieces`)
  }
  t.mock.timers.tick(1)
  assert.equal(noted.ended, true, '2 s after the last piece')
})

test('it ends with the body, and after 16 MiB', async (t) => {
  const one = answered(t)
  one.body.end()
  await turn()
  assert.equal(one.noted.ended, true)
  t.mock.timers.reset()
  const other = answered(t)
  await other.send(16 * 1024 * 1024)
  assert.equal(other.noted.ended, false)
  await other.send(1)
  assert.equal(other.noted.ended, true)
})
