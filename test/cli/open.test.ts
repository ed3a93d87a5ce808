// Which commands create a database: in the wrong folder, any other would report on an empty one.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { drivers } from '../support/drivers.ts'
import { intray } from '../support/process.ts'

const TENANT = ['--account', '1', '--company', '1']
const MISSING = /^intray: (There is no database at \/|The database \w+ has no Intray data)/

for (const driver of drivers) {
  test(`${driver.name}: only token create and operator add create a database, and they say so`, async () => {
    const env = { INTRAY_DATABASE_URL: await driver.newDatabase() }
    for (const args of [
      ['token', 'list'],
      ['inbox', 'list', ...TENANT],
      ['inbox', 'claim', ...TENANT],
    ]) {
      const { code, stderr } = await intray(args, env)
      assert.equal(code, 1, args.join(' '))
      assert.match(stderr, MISSING)
    }
    for (const [args, says] of [
      [['operator', 'add', 'ada'], /^The database is new: .+\n$/],
      [['token', 'create', ...TENANT], /^$/],
      [['token', 'list'], /^$/],
    ] as const) {
      const { code, stderr } = await intray(args, env)
      assert.equal(code, 0, stderr)
      assert.match(stderr, says)
    }
  })
}
