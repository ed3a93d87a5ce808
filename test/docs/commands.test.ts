// What the contract says of a processor's command, the service takes: no body that fits its schema is answered 422.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Ajv2020 } from 'ajv/dist/2020.js'
import fc from 'fast-check'
import { readAck, readClaim, readExtend, readRelease, readRequeueOne } from '../../src/processing/commands.ts'
import { document } from '../support/contract.ts'

const ajv = new Ajv2020({ strict: false, validateFormats: false })
ajv.addSchema(document, 'openapi')

const COMMANDS = {
  AckCommand: { read: readAck, names: ['id', 'lease_id', 'events', 'subscription'] },
  ExtendCommand: { read: readExtend, names: ['id', 'lease_id', 'events', 'lease_s', 'subscription'] },
  ReleaseCommand: { read: readRelease, names: ['id', 'lease_id', 'events', 'delay_s', 'error', 'subscription'] },
  ClaimCommand: { read: readClaim, names: ['limit', 'lease_s', 'wait_s', 'ordered', 'filter', 'subscription'] },
  RequeueEventCommand: { read: readRequeueOne, names: ['subscription', 'other'] },
} as const

const lease = '019a8661-2c7e-7b3a-9d51-6f0c2b8e4a17'
const id = fc.constantFrom<unknown>(1, 4711, 2 ** 53 - 1, 2 ** 53, 0, 1.5, '1', null)
const leaseId = fc.constantFrom<unknown>(
  lease,
  'x'.repeat(100),
  'x'.repeat(101),
  '',
  'a\0b',
  '\ud800',
  '😀'.repeat(60),
  7,
)
const seconds = fc.constantFrom<unknown>(0, 1, 60, 43_200, 43_201, -1, 0.5, '1')
const error = fc.constantFrom<unknown>('the CRM answered 500', '', 'x'.repeat(1000), 'x'.repeat(1001), 'a\0b', 5)
const subscription = fc.constantFrom<unknown>('default', 'crm', '', 'CRM', '-x', 'x'.repeat(65))

/** Mostly what is right, so that many bodies fit. */
const often = (usual: unknown, other: fc.Arbitrary<unknown>) =>
  fc.oneof({ weight: 6, arbitrary: fc.constant(usual) }, { weight: 1, arbitrary: other })
const event = fc.record(
  { id: often(4711, id), lease_id: often(lease, leaseId), delay_s: often(60, seconds), error: often('no', error) },
  { requiredKeys: [] },
)
const FIELDS: Readonly<Record<string, fc.Arbitrary<unknown>>> = {
  id: often(4711, id),
  lease_id: often(lease, leaseId),
  events: fc.array(event, { maxLength: 3 }),
  lease_s: often(60, seconds),
  delay_s: often(60, seconds),
  error: often('no', error),
  limit: fc.constantFrom<unknown>(1, 200, 201, 0),
  wait_s: fc.constantFrom<unknown>(0, 20, 21),
  ordered: fc.constantFrom<unknown>(true, 'true'),
  filter: fc.constantFrom<unknown>({}, { channel_ref: 'a' }, { channel_ref: '' }, { channel_ref: 'a\0' }, { other: 1 }),
  subscription: often('default', subscription),
  other: fc.constant(1),
}

for (const [name, { read, names }] of Object.entries(COMMANDS)) {
  test(`a body that fits ${name} is a command`, () => {
    const fits = ajv.compile({ $ref: `openapi#/components/schemas/${name}` })
    let fitting = 0
    const check = (given: object) => {
      if (!fits(given)) return
      fitting += 1
      assert.ok('command' in read(given as Record<string, unknown>), JSON.stringify(given).slice(0, 300))
    }
    const fields = Object.fromEntries(names.map((field) => [field, FIELDS[field]!]))
    fc.assert(fc.property(fc.record(fields, { requiredKeys: [] }), check), { numRuns: 3000, seed: 1 })
    assert.ok(fitting > 100, `only ${fitting} bodies fit`)
  })
}

test('one event and a list exclude each other, and one of them must be there', () => {
  const one = { id: 4711, lease_id: lease }
  for (const name of ['AckCommand', 'ExtendCommand', 'ReleaseCommand']) {
    const fits = ajv.compile({ $ref: `openapi#/components/schemas/${name}` })
    for (const given of [one, { events: [one] }, { ...one, subscription: 'crm' }]) assert.ok(fits(given), name)
    for (const given of [{}, { id: 4711 }, { lease_id: lease }, { ...one, events: [one] }, { id: 1, events: [one] }])
      assert.ok(!fits(given), `${name}: ${JSON.stringify(given)}`)
  }
})
