// `./intray inbox release`, `inbox list --state` and `inbox subscription`: what people do with events that failed.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { idOf, item } from '../store/rows.ts'
import { drivers } from '../support/drivers.ts'
import { withStore } from '../support/journal.ts'
import { intray } from '../support/process.ts'

const OURS = ['--account', '7', '--company', '42']

type Json = Record<string, unknown>

async function newSubject(newDatabase: () => Promise<string>) {
  const url = await newDatabase()
  const id = await withStore(url, async (store) => {
    const [outcome] = await store.journal.append([item({ channelRef: 'a' })])
    while ((await store.index.step({ maxRows: 1000, maxBytes: 1e9 })).lag > 0);
    return idOf(outcome)
  })
  const run = async (args: readonly string[], expected = 0) => {
    const { code, stdout, stderr } = await intray(['inbox', ...args, ...OURS], {
      INTRAY_DATABASE_URL: url,
      INTRAY_MAX_ATTEMPTS: '1',
    })
    assert.equal(code, expected, `inbox ${args.join(' ')}: ${stdout}${stderr}`)
    return { text: stdout.toString(), stderr }
  }
  const lines = async (...args: string[]): Promise<Json[]> =>
    Array.from((await run([...args, '--json'])).text.matchAll(/[^\n]+/g), ([line]) => JSON.parse(line) as Json)
  /** Claims the event and releases it; answers with the attempt that it was and its state. */
  const release = async (subscription: string, ...flags: string[]) => {
    const of = ['--subscription', subscription]
    const [claimed] = await lines('claim', '--lease', '5m', ...of)
    const [settled] = await lines('release', String(id), String(claimed!.lease_id), ...of, ...flags)
    return [claimed!.attempts, settled!.state]
  }
  return { id, run, lines, release }
}

for (const driver of drivers) {
  test(`${driver.name}: release, dead and attempts by the rules of a subscription, and the last error in lists`, async () => {
    const { id, run, lines, release } = await newSubject(() => driver.newDatabase())
    const [made] = await lines(
      'subscription',
      'crm',
      '--from',
      'beginning',
      '--max-attempts',
      '7',
      '--first-delay',
      '5s',
    )
    assert.deepEqual([made!.name, made!.max_attempts, made!.first_delay_s, made!.max_delay_s], ['crm', 7, 5, 3600])
    const { text } = await run(['subscription'])
    assert.match(
      text,
      /^NAME +CREATED +MAX ATTEMPTS +FIRST DELAY +MAX DELAY\ndefault +- +1 +1s +3600s\ncrm +\S+ +7 +5s /,
    )

    // Only one attempt is allowed, and is left after a release without an error.
    assert.deepEqual(await release('default', '--delay', '0s'), [1, 'pending'])
    assert.deepEqual(await release('default', '--error', 'still\u001b[2J down'), [1, 'dead'])
    const [dead] = await lines('list', '--state', 'dead')
    assert.deepEqual([dead!.id, dead!.state, dead!.last_error], [id, 'dead', 'still\u001b[2J down'])
    const list = (await run(['list', '--state', 'dead'])).text
    assert.match(list, /^ID +RECEIVED +CHANNEL +CONTACT +LAST ERROR +TEXT$/m)
    assert.match(list, /still\\u001b\[2J down/)

    // Seven are allowed, and none is tried again.
    assert.deepEqual(await release('crm', '--dead', '--error', 'no such customer'), [1, 'dead'])
    assert.equal((await lines('list', '--state', 'dead', '--subscription', 'crm'))[0]!.last_error, 'no such customer')
    assert.match(
      (await run(['list', '--state', 'dead', '--subscription', 'erp'], 1)).stderr,
      /no subscription erp\. It/,
    )
  })
}

test('a call that is wrong is refused with code 2', async () => {
  for (const args of [
    ['release', '1', 'lease', '--dead'],
    ['list', '--subscription', 'crm'],
    ['subscription', 'No Name'],
    ['subscription', '--max-attempts', '3'],
    ['subscription', 'crm', '--max-attempts', '0'],
    ['subscription', 'crm', '--first-delay', '0s'],
  ]) {
    const { code, stderr } = await intray(['inbox', ...args, ...OURS], { INTRAY_DATABASE_URL: 'sqlite:/dev/null/none' })
    assert.equal(code, 2, args.join(' '))
    assert.match(stderr, /^intray: \S.*\n/, args.join(' '))
  }
})
