// What commands and servers show of a database's URL.

import assert from 'node:assert/strict'
import { resolve } from 'node:path'
import { test } from 'node:test'
import { publicUrl } from '../../src/store/open.ts'

test('the URL that is shown has no password and no parameters, and an absolute path', () => {
  for (const [url, shown] of [
    ['sqlite:./data/intray.db', `sqlite:${resolve('data/intray.db')}`],
    ['sqlite:///var/intray.db', 'sqlite:/var/intray.db'],
    ['postgres://db/intray', 'postgres://db/intray'],
    ['postgres://ada@db/intray', 'postgres://ada@db/intray'],
    ['postgres://ada:secret@db:5432,db2/intray', 'postgres://ada@db:5432,db2/intray'],
    ['postgresql://ada:se:c@ret@db/intray?password=secret', 'postgresql://ada@db/intray'],
    ['postgres://ada:secret@/intray?host=/run/pg', 'postgres://ada@/intray'],
  ] as const) {
    assert.equal(publicUrl(url), shown)
  }
})
