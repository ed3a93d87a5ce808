// What a release, an ack or a requeue has to know of a lane costs the same however many events wait there.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { openStore } from '../../../src/store/open.ts'
import { FACTS } from '../../../src/store/postgres/processing/processing-statements.ts'
import { newPostgresDatabase, withClient } from '../../support/postgres/databases.ts'

const WAITING = 3000
const LANE = 1

interface Plan {
  readonly 'Actual Rows': number
  readonly 'Actual Loops': number
  readonly 'Rows Removed by Filter'?: number
  readonly Plans?: readonly Plan[]
}

function rowsOf(plan: Plan): number {
  const own = plan['Actual Loops'] * (plan['Actual Rows'] + (plan['Rows Removed by Filter'] ?? 0))
  return (plan.Plans ?? []).reduce((sum, child) => sum + rowsOf(child), own)
}

test('the first event of a lane and the soonest one are looked up, not searched for', async (t) => {
  const url = await newPostgresDatabase()
  const store = await openStore(url, { role: 'tool' })
  t.after(() => store.close())
  await withClient(url, async (client) => {
    // All are in back-off, the last is available first.
    await client.query(
      `INSERT INTO intray.deliveries (company_id, account_id, subscription, event_id, lane, state, attempts, available_at,
         ordered, entries) SELECT 42, 7, 0, n, $1::bigint, 'pending', 1, 1000000 - n, 0, 0 FROM generate_series(1, $2::bigint) n`,
      [LANE, WAITING],
    )
    const rowsLookedAt = async (text: string): Promise<number> => {
      const values = [42, 7, 0, `{${LANE}}`, 1000]
      const { rows } = await client.query(`EXPLAIN (ANALYZE, FORMAT JSON) ${text}`, values)
      return rowsOf((rows[0]['QUERY PLAN'] as [{ Plan: Plan }])[0].Plan)
    }
    await client.query('SET enable_seqscan = off')
    for (const analyze of [false, true]) {
      if (analyze) await client.query('ANALYZE intray.deliveries')
      const { rows } = await client.query(FACTS.text, [42, 7, 0, `{${LANE}}`, 1000])
      assert.deepEqual(rows.map(Object.values), [[`${LANE}`, '1', '999999', `${1_000_000 - WAITING}`]])
      const looked = await rowsLookedAt(FACTS.text)
      assert.ok(looked <= 20, `${looked} rows`)
    }
    const searching = FACTS.text.replaceAll('ORDER BY available_at', 'ORDER BY available_at + 0')
    assert.ok((await rowsLookedAt(searching)) > WAITING, 'control: without its index, it passes all that wait')
  })
})
