// The settings of the access log, as a running service follows them.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startTestApp } from '../support/app.ts'
import { drivers } from '../support/drivers.ts'
import { until } from '../support/until.ts'

test('INTRAY_LOG_REQUESTS=0 leaves out the requests that went well, and INTRAY_LOG_SLOW says which were slow', async (t) => {
  const loggedBy = async (logSlow: string) => {
    const app = await startTestApp(t, drivers[0]!, { settings: { logRequests: '0', logSlow } })
    for (const n of [1, 2, 3]) assert.equal((await app.post({ n })).status, 200)
    assert.equal((await app.post('not json')).status, 400)
    const lines = () => app.log.filter(({ msg }) => msg === 'request').map(({ status }) => status)
    await until('the refused one is logged', () => lines().includes(400))
    return lines().toSorted()
  }
  assert.deepEqual(await loggedBy('1h'), [400])
  assert.deepEqual(await loggedBy('0s'), [200, 200, 200, 400])
})
