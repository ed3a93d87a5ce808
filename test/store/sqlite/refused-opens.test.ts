// What cannot be opened is refused with a sentence for the operator: what is wrong, where, and what to do.

import assert from 'node:assert/strict'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { StoreRefused } from '../../../src/store/contract/failure.ts'
import { openStore } from '../../../src/store/open.ts'
import { item } from '../rows.ts'
import { readOnlyFolder } from '../../support/disk.ts'
import { tempFolder } from '../../support/temp.ts'

const ROLES = ['server', 'tool'] as const

async function isRefused(path: string, role: (typeof ROLES)[number], sentence: RegExp): Promise<void> {
  await assert.rejects(openStore(`sqlite:${path}`, { role }), (error) => {
    assert.ok(error instanceof StoreRefused, `not a StoreRefused: ${error}`)
    assert.match(error.message, sentence)
    assert.ok(error.message.includes(path), `names the database: ${error.message}`)
    assert.match(error.message, /\.$/)
    return true
  })
}

for (const role of ROLES) {
  test(`a file that is no SQLite database is refused and left as it is by a ${role}`, async () => {
    const path = join(tempFolder('refused'), 'intray.db')
    const text = 'This is a text that somebody would miss.\n'.repeat(200)
    writeFileSync(path, text)
    await isRefused(path, role, /not a SQLite database/)
    assert.equal(readFileSync(path, 'utf8'), text)
  })

  test(`a database in a folder that cannot be written is refused to a ${role}: a new one`, async (t) => {
    const folder = await readOnlyFolder(t, async () => {})
    await isRefused(join(folder, 'intray.db'), role, /writ/)
  })

  test(`a database in a folder that cannot be written is refused to a ${role}: in a new folder`, async (t) => {
    const folder = await readOnlyFolder(t, async () => {})
    await isRefused(join(folder, 'data', 'intray.db'), role, /cannot be written.*read-only/)
  })

  test(`a folder where the database should be is refused by a ${role}`, async () => {
    const path = join(tempFolder('refused'), 'intray.db')
    mkdirSync(path)
    await isRefused(path, role, /cannot be opened/)
  })

  test(`a file where the folder should be is refused by a ${role}`, async () => {
    const file = join(tempFolder('refused'), 'data')
    writeFileSync(file, '')
    await isRefused(join(file, 'intray.db'), role, /cannot be opened/)
  })
}

for (const role of ROLES) {
  test(`a database that exists in a folder that cannot be written is refused to a ${role}`, async (t) => {
    const made = join(tempFolder('made'), 'intray.db')
    const store = await openStore(`sqlite:${made}`, { role: 'server' })
    await store.journal.append([item()])
    await store.close()
    const folder = await readOnlyFolder(t, async (to) => writeFileSync(join(to, 'intray.db'), readFileSync(made)))
    await isRefused(join(folder, 'intray.db'), role, /writ/)
  })
}

test('a database that is damaged at its root is refused', async () => {
  const path = join(tempFolder('refused'), 'intray.db')
  const store = await openStore(`sqlite:${path}`, { role: 'server' })
  await store.journal.append([item()])
  await store.close()
  const bytes = readFileSync(path)
  // The header stays: it still says SQLite. The schema behind it is gone.
  bytes.fill(0xff, 100, 4096)
  writeFileSync(path, bytes)
  for (const role of ROLES) await isRefused(path, role, /damaged/)
})

test('a URL of no known form is refused with an example', async () => {
  for (const url of ['', 'intray.db', 'sqlite', 'mysql://localhost/x', 'sqlite:', 'sqlite::memory:']) {
    await assert.rejects(openStore(url, { role: 'tool' }), {
      name: 'StoreRefused',
      message: /sqlite:\.\/data\/intray\.db/,
    })
  }
})

test('relative, absolute and three-slash URLs name the same file', async () => {
  const path = join(tempFolder('url'), 'intray.db')
  for (const url of [`sqlite:${path}`, `sqlite://${path}`]) {
    const store = await openStore(url, { role: 'tool' })
    assert.equal(store.facts.path, path)
    await store.close()
  }
})
