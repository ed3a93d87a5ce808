// Two restores to one place, and a database that appears there meanwhile: a restore puts only what it checked in place, and
// overwrites nothing.

import assert from 'node:assert/strict'
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { epochStart } from '../../../src/model/id-gaps.ts'
import { openBackupSource, openRestore, openStore } from '../../../src/store/open.ts'
import { tempFolder } from '../../support/temp.ts'
import { item, NOON } from '../rows.ts'

/** A backup with so many messages, and a folder for databases. */
async function backedUp(rows: number) {
  const folder = tempFolder('restore')
  const url = `sqlite:${join(folder, 'old.db')}`
  const store = await openStore(url, { role: 'tool' })
  for (let n = 0; n < rows; n += 1) await store.journal.append([item()])
  await store.close()
  const file = join(folder, 'backup.db')
  const source = await openBackupSource(url)
  await source.write(file, () => {})
  await source.close()
  return { folder, file }
}

test('one restore to a place at a time: another one is refused, and changes nothing of what the first one puts there', async () => {
  const { file, folder } = await backedUp(1)
  const other = await backedUp(3)
  const to = `sqlite:${join(folder, 'new', 'intray.db')}`
  const first = await openRestore(file, to)
  await first.load()
  const second = await openRestore(other.file, to)
  await assert.rejects(second.load(), /Another restore to .* is running\. Wait until it has ended\./)
  await second.discard()
  assert.deepEqual(await first.finish(NOON), { after: 1, before: epochStart(1, NOON) })
  await first.discard()
  assert.deepEqual(readdirSync(join(folder, 'new')), ['intray.db'])
  await assert.rejects(openRestore(other.file, to), /exists\. A restore overwrites nothing/)
})

test('a database that appears while a backup is restored is not overwritten', async () => {
  const { file, folder } = await backedUp(1)
  for (const name of ['database.db', 'log.db-wal']) {
    const appeared = join(folder, name)
    const path = appeared.replace('-wal', '')
    const restore = await openRestore(file, `sqlite:${path}`)
    await restore.load()
    writeFileSync(appeared, 'mine')
    await assert.rejects(restore.finish(NOON), /exists\. A restore overwrites nothing/)
    await restore.discard()
    assert.equal(readFileSync(appeared, 'utf8'), 'mine')
    assert.ok(!existsSync(`${path}.part`))
  }
})
