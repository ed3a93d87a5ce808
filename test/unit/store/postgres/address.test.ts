// INTRAY_DATABASE_URL for PostgreSQL: several hosts, and no word of the password outside of what is handed to `pg`.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { StoreRefused } from '../../../../src/store/contract/failure.ts'
import { parseAddress, programAddress } from '../../../../src/store/postgres/connection/address.ts'

test('one connection string for each host, with everything else in each', () => {
  const { hosts, database, poolSize } = parseAddress(
    'postgres://ada:p%40ss@db1:5433,db2,[2001:db8::1]:5434/intray?sslmode=disable&pool_size=7&target_session_attrs=read-write',
  )
  assert.deepEqual(
    hosts.map(({ name }) => name),
    ['db1:5433', 'db2:5432', '[2001:db8::1]:5434'],
  )
  assert.deepEqual(
    hosts.map(({ connectionString }) => connectionString),
    ['db1:5433', 'db2', '[2001:db8::1]:5434'].map((host) => `postgres://ada:p%40ss@${host}/intray?sslmode=disable`),
  )
  assert.equal(database, 'intray')
  assert.equal(poolSize, 7)
})

test('without port, user and parameters, and by the longer name of the scheme', () => {
  const { hosts, database, poolSize } = parseAddress('postgresql://db/in%20tray')
  assert.deepEqual(hosts, [{ name: 'db:5432', connectionString: 'postgres://db/in%20tray' }])
  assert.equal(database, 'in tray')
  assert.equal(poolSize, 10)
})

test('a socket is named by the parameter host', () => {
  const [host] = parseAddress('postgres://ada@/intray?host=/run/postgresql').hosts
  assert.equal(host?.name, '/run/postgresql')
})

const REFUSED = {
  'no database': 'postgres://ada:hunter2@db',
  'an empty database': 'postgres://ada:hunter2@db/',
  'a port that is none': 'postgres://ada:hunter2@db:x/intray',
  'a second port that is none': 'postgres://ada:hunter2@db:5432,db2:99999/intray',
  'a password that is not encoded': 'postgres://ada:hunter2/x@db/intray',
  'a pool of one': 'postgres://ada:hunter2@db/intray?pool_size=1',
  'a pool that is no number': 'postgres://ada:hunter2@db/intray?pool_size=many',
  'a standby as the target': 'postgres://ada:hunter2@db/intray?target_session_attrs=standby',
  'a database that is not encoded properly': 'postgres://ada:hunter2@db/%zz',
} as const
for (const [name, url] of Object.entries(REFUSED)) {
  test(`refused, without quoting the URL: ${name}`, () => {
    assert.throws(
      () => parseAddress(url),
      (error) => {
        assert.ok(error instanceof StoreRefused)
        assert.match(error.message, /^INTRAY_DATABASE_URL .*\.$/)
        assert.doesNotMatch(error.message, /hunter2/)
        return true
      },
    )
  })
}

test("programs of PostgreSQL get the URL without its password, and without what only Intray's pool knows", () => {
  assert.deepEqual(programAddress('postgres://ada:s%3Acret@db1,db2:5433/intray?pool_size=4&sslmode=require'), {
    uri: 'postgres://ada@db1,db2:5433/intray?sslmode=require&target_session_attrs=read-write',
    password: 's:cret',
  })
  assert.deepEqual(programAddress('postgresql://db/intray'), { uri: 'postgres://db/intray', password: null })
})
