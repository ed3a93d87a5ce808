// Each program that the console shows beside a new token, saved as it is and run: what it sends is stored, what it works on is
// acknowledged. WordPress runs its own in test/kits/wordpress/outbox.test.ts.

import assert from 'node:assert/strict'
import { copyFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { before, describe, type TestContext, test } from 'node:test'
import { hasProgram } from '../../../prove/debian.ts'
import { runToEnd } from '../../support/command.ts'
import { drivers } from '../../support/drivers.ts'
import { missingPhp } from '../../support/php.ts'
import { type Finished, ROOT } from '../../support/process.ts'
import { missingPython, PYTHON } from '../../support/python.ts'
import { sharedApp } from '../../support/shared-app.ts'
import { tempFolder } from '../../support/temp.ts'
import { until } from '../../support/until.ts'
import { PYTHON_KIT } from '../python/kit.ts'
import { type Example, NODE, type StoredEvent, startExample, storedAfter } from './kit.ts'
import { SENDING, snippet, WORKING } from './snippets.ts'

const missingJq = !hasProgram('jq') && 'not run: jq is not installed'

const shared = sharedApp(drivers[0]!)

/** A folder with the program, and the text that was pasted into it. */
function pasted(file: string, token: string): { readonly folder: string; readonly text: string } {
  const folder = tempFolder('snippet')
  // The one path that a site chooses itself.
  const text = snippet(file, shared.app.url, token).replaceAll('/var/lib/site', folder)
  writeFileSync(join(folder, file), text)
  if (file === SENDING.PHP) copyFileSync(join(ROOT, 'kits/php/Intray.php'), join(folder, 'Intray.php'))
  return { folder, text }
}

function run(command: readonly string[], folder: string): Promise<Finished> {
  return runToEnd(command, { PYTHONPATH: PYTHON_KIT, PYTHONDONTWRITEBYTECODE: '1' }, { cwd: folder })
}

describe('a program that sends', () => {
  const sends = async (name: Exclude<keyof typeof SENDING, 'WordPress'>, command: readonly string[]) => {
    const { app } = shared
    const file = SENDING[name]
    const before = await app.store.events.watermark()
    const { folder, text } = pasted(file, app.token)
    const [, cron] = /^\/\/ \* \* \* \* \* (.*)$/m.exec(text) ?? []
    let said = ''
    let stored: StoredEvent[] = []
    // close() waits for 10 s: on a machine that stands still for as long, the message is left to the next run.
    for (let runs = 0; runs < 3 && stored.length === 0; runs += 1) {
      const { code, stdout, stderr } = await run([...command, join(folder, file)], folder)
      assert.deepEqual([code, stderr.includes(app.token)], [0, false], stderr)
      said = stdout.toString()
      if (cron !== undefined) assert.equal((await run(['sh', '-c', cron], folder)).code, 0)
      stored = await storedAfter(app, before)
    }
    const { source_ref, channel_ref, ...payload } = stored[0]!.payload
    assert.deepEqual(
      [stored.length, source_ref, channel_ref],
      [1, `example:${name.toLowerCase()}:1`, 'ada@example.org'],
    )
    assert.deepEqual(payload, {
      contact: { name: 'Ada Lovelace', email: 'ada@example.org' },
      message: { type: 'text', text: 'Do you ship to Malta?' },
    })
    return said
  }

  test('in TypeScript', async () => {
    await sends('TypeScript', NODE)
  })
  test('in Python', { skip: missingPython() }, async () => {
    await sends('Python', [PYTHON])
  })
  test('with curl', async () => {
    assert.match(await sends('curl', ['sh']), /^{"ok":true,"id":\d+}$/)
  })
  test('in PHP, with the line for cron', { skip: missingPhp() }, async () => {
    await sends('PHP', ['php'])
  })
})

describe('a program that processes', () => {
  let sending: string
  let processing: string
  before(async () => {
    // Of another company: the messages of the programs that send are not among its events.
    sending = await shared.app.createToken({ companyId: 43 })
    processing = await shared.app.createToken({ companyId: 43, scope: 'processor' })
  })
  const newEvent = async (text: string) => {
    const { json } = await shared.app.post({ message: { text } }, { Authorization: `Bearer ${sending}` })
    return Number(json!.id)
  }
  const stateOf = async (id: number) => {
    const headers = { Authorization: `Bearer ${processing}` }
    const { json } = await shared.app.send({ path: `/v1/inbox/events/${id}/history`, headers })
    return (json!.deliveries as { readonly state: string }[])[0]?.state
  }

  const works = async (t: TestContext, name: 'TypeScript' | 'Python', command: readonly string[]) => {
    const file = WORKING[name]
    const { folder } = pasted(file, processing)
    const worker: Example = startExample(t, [...command, join(folder, file)], {
      cwd: folder,
      env: { PYTHONPATH: PYTHON_KIT, PYTHONDONTWRITEBYTECODE: '1' },
    })
    const id = await newEvent(`for ${name}`)
    await until('the worker has the event', () => worker.said().includes(`for ${name}`))
    await until('it is acknowledged', async () => (await stateOf(id)) === 'done')
    assert.equal(await worker.stop('SIGTERM'), 0)
  }

  test('in TypeScript, and stops when it is asked to', async (t) => {
    await works(t, 'TypeScript', NODE)
  })
  test('in Python, and stops when it is asked to', { skip: missingPython() }, async (t) => {
    await works(t, 'Python', [PYTHON])
  })
  test('with curl', { skip: missingJq }, async () => {
    const id = await newEvent('for curl')
    const { folder } = pasted(WORKING.curl, processing)
    const { code, stdout, stderr } = await run(['sh', WORKING.curl], folder)
    assert.equal(code, 0, stderr)
    assert.match(stdout.toString(), /for curl/)
    assert.equal(await stateOf(id), 'done')
  })
})
