import assert from 'node:assert/strict'
import { test } from 'node:test'
import { CommandReading } from '../../../../src/http/inbox/command.ts'
import { readAck, readClaim } from '../../../../src/processing/commands.ts'
import { SlicedWork } from '../../../../src/runtime/sliced-work.ts'

const ack = (items: number): Buffer =>
  Buffer.from(
    JSON.stringify({ events: Array.from({ length: items }, (_, n) => ({ id: n + 1, lease_id: `lease-${n}` })) }),
  )

/** Reads commands, in turns that the test takes itself; returns in which turn each was parsed, by holder. */
async function parsed(bodies: readonly (readonly [holder: string, body: Buffer])[], unitsPerTurn = 65_536) {
  const due: (() => void)[] = []
  const work = new SlicedWork({ unitsPerTurn, unitsPerSlice: unitsPerTurn / 4, nextTurn: (run) => due.push(run) })
  const turns: [holder: string, turn: number][] = []
  let turn = 0
  for (const [holder, body] of bodies) {
    const read = (fields: Record<string, unknown>) => {
      turns.push([holder, turn])
      return readAck(fields)
    }
    void work.finish(holder, new CommandReading(body, read))
  }
  for (let run = due.shift(); run; run = due.shift()) {
    turn += 1
    run()
  }
  return turns
}

test('in one turn of the event loop at most one long command is parsed, tenants in turn', async () => {
  const bodies = [...Array.from({ length: 8 }, () => ['busy', ack(1000)] as const), ['other', ack(1000)] as const]
  const turns = await parsed(bodies)
  assert.equal(turns.length, 9)
  assert.equal(new Set(turns.map(([, turn]) => turn)).size, 9)
  const place = turns.findIndex(([holder]) => holder === 'other')
  assert.ok(place <= 1, `the other tenant was served as number ${place + 1}`)
  const control = await parsed(bodies, Number.MAX_SAFE_INTEGER)
  assert.equal(new Set(control.map(([, turn]) => turn)).size, 1, 'control: without a bound all in one turn')
})

test('a short command is parsed at once', async () => {
  assert.deepEqual(await parsed([['one', ack(1)]]), [['one', 0]])
})

test('of a command with thousands of wrong fields the first 20 are named', () => {
  const wrong = (count: number) => {
    const fields = Object.fromEntries(Array.from({ length: count }, (_, n) => [`k${n}`, 1]))
    const reading = new CommandReading(Buffer.from(JSON.stringify(fields)), readClaim)
    while (!reading.isDone) reading.run(1 << 20)
    assert.ok('problem' in reading.result!)
    return reading.result.problem.fields?.map(({ path }) => path)
  }
  assert.deepEqual(
    wrong(8000),
    Array.from({ length: 20 }, (_, n) => `/k${n}`),
  )
  assert.equal(wrong(19)?.length, 19, 'control: of fewer all')
})
