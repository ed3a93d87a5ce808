// Which requests have a line in the log. What a line holds is in test/api and test/flow/secrets.test.ts.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type AccessLogOptions, createAccessLog, type SentAnswer } from '../../../src/http/access-log.ts'
import { Exchange } from '../../../src/http/exchange.ts'
import type { RequestHead } from '../../../src/http/wire/head.ts'
import { createLogger } from '../../../src/runtime/log.ts'

const HEAD = { method: 'GET', url: '/', headers: {}, rawHeaders: [] } as unknown as RequestHead

function startLog(options: Partial<AccessLogOptions>) {
  const statuses: unknown[] = []
  const logger = createLogger('info', (line) => statuses.push((JSON.parse(line) as { status: unknown }).status))
  const log = createAccessLog({ logger, remoteAddr: 'full', logRequests: 100, logSlow: 1000, ...options })
  const request = (status: number | null, answer: Partial<SentAnswer> = {}, ms = 1) =>
    log(new Exchange({ stopping: false }), HEAD, { status, isComplete: true, ...answer }, ms)
  return { statuses, request }
}

test('of what went well the share is logged that is set', () => {
  const loggedOf = (logRequests: number) => {
    let n = 0
    const { statuses, request } = startLog({ logRequests, random: () => (n++ % 100) / 100 })
    for (let sent = 0; sent < 1000; sent++) request(sent % 2 === 0 ? 200 : 304)
    return statuses.length
  }
  assert.deepEqual([0, 1, 10, 99, 100].map(loggedOf), [0, 10, 100, 990, 1000])
})

test('refused, failed, broken off and slow ones are logged, whatever the share is', () => {
  const { statuses, request } = startLog({ logRequests: 0 })
  for (const status of [200, 204, 302, 400, 404, 429, 500, 503, null]) request(status)
  assert.deepEqual(statuses.splice(0), [400, 404, 429, 500, 503, null])
  request(201, { isComplete: false })
  request(200, {}, 999)
  request(202, {}, 1000)
  assert.deepEqual(statuses, [201, 202])
})
