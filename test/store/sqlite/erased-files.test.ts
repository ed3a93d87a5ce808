// What the files of SQLite keep of erased messages: nothing, once an erasure is no longer pending, as often as one follows another.

import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { test } from 'node:test'
import { randomBytes } from 'node:crypto'
import { openStore } from '../../../src/store/open.ts'
import { tempFolder } from '../../support/temp.ts'
import { append, indexAll } from '../suite.ts'
import { TENANT, NOON } from '../rows.ts'

test('each erasure leaves the files, and one waits for whoever reads their old state', async (t) => {
  const path = join(tempFolder('erased'), 'intray.db')
  const store = await openStore(`sqlite:${path}`, { role: 'server' })
  t.after(() => store.close())
  const texts: string[] = []
  const ids: number[] = []
  for (let n = 0; n < 60; n++) {
    const text = `k${randomBytes(10).toString('hex')}`
    texts.push(text.slice(-12))
    const fields = { sourceRef: text, body: { source_ref: text, message: { text: `${text} ${'x '.repeat(n * 50)}` } } }
    ids.push(await append(store, fields))
  }
  await indexAll(store)
  const isInFiles = (n: number) => {
    const files = readdirSync(dirname(path)).map((name) => readFileSync(join(dirname(path), name)))
    return files.some((file) => file.includes(texts[n]!))
  }
  const purge = async () => {
    for (let steps = 0; steps < 1000; steps++) {
      const { more, waits } = await store.erasures.purge()
      if (!more || waits) return waits
    }
    throw new Error('the purge does not end')
  }
  for (const n of [0, 30, 59]) {
    assert.ok(isInFiles(n), 'the control: it is there before')
    await store.erasures.erase(TENANT, [ids[n]!], NOON)
    assert.equal(await purge(), false)
    assert.ok(!isInFiles(n), `message ${n}`)
  }
  assert.ok(isInFiles(1), 'the others stay')

  const reader = new DatabaseSync(path, { readOnly: true })
  t.after(() => reader.isOpen && reader.close())
  reader.exec('BEGIN')
  reader.prepare('SELECT count(*) FROM events').get()
  await store.erasures.erase(TENANT, [ids[1]!], NOON)
  assert.equal(await purge(), true)
  assert.equal(await store.erasures.isPending(TENANT), true)
  await append(store, { body: 'intake goes on' })
  reader.close()
  assert.equal(await purge(), false)
  assert.equal(await store.erasures.isPending(TENANT), false)
  assert.ok(!isInFiles(1))
})
