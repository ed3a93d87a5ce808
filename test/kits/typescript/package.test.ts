// The client as its users get it: packed, installed in an empty project, run by each Node that it supports, and type-checked with
// a consumer's own settings.

import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, globSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { before, describe, test } from 'node:test'
import { runToEnd } from '../../support/command.ts'
import { drivers } from '../../support/drivers.ts'
import { ROOT } from '../../support/process.ts'
import { sharedApp } from '../../support/shared-app.ts'
import { tempFolder } from '../../support/temp.ts'
import { until, within } from '../../support/until.ts'

const VERSIONS = [20, 22, 26] as const

/** From the npm packages that bring Node. */
function nodeOf(version: number): string {
  if (version === 26) return process.execPath
  return join(ROOT, `test/support/node-${version}/node_modules/node-linux-${process.arch}/bin/node`)
}

const PROGRAM = `
import { Intray, LeaseLost, Refused, Unavailable } from '@intray/client'

const [url, sending, processing, outbox] = process.argv.slice(2)
const sender = new Intray({ url, token: sending, outbox })
for (const n of [1, 2, 3]) await sender.send({ source_ref: outbox + n, channel_ref: outbox, message: { text: 'from ' + process.version } })
while ((await sender.flush()).waiting > 0);
const left = await sender.close()

const processor = new Intray({ url, token: processing, outbox: 'none' })
const stop = new AbortController()
const texts = []
await processor.work(({ payload }) => {
  if (texts.push(payload.message.text) === 3) stop.abort()
}, { signal: stop.signal })
const followed = []
for await (const { source_ref } of processor.follow({ after: 0 })) {
  if (source_ref.startsWith(outbox) && followed.push(source_ref) === 3) break
}
await processor.close()
console.log(JSON.stringify({ left, texts, followed: followed.length, errors: [LeaseLost, Refused, Unavailable].map(({ name }) => name) }))
`

const TYPED = `
import { Intray, Refused, type ClaimedEvent, type Receipt } from '@intray/client'

const intray = new Intray({ url: 'https://intray.example', token: 'itr_x', outbox: 'outbox.db', onProblem: (error: Error) => console.error(error) })
export async function main(signal: AbortSignal): Promise<Receipt | null> {
  const { receipt, source_ref } = await intray.send({ source_ref: 'a', channel_ref: null, contact: { name: 'Ada' }, files: ['a.pdf'], meta: { form: 'contact' } }, { traceparent: '00' })
  const { waiting } = await intray.flush()
  await intray.work(async (event: ClaimedEvent, context) => { if (!context.signal.aborted) console.log(event.attempts) }, { concurrency: 2, signal })
  for await (const event of intray.follow({ after: 0, signal })) console.log(event.id.toFixed(), source_ref.length, waiting)
  await intray.close({ timeoutMs: 100 }).catch((error: unknown) => { if (error instanceof Refused) console.log(error.fields[0]?.path) })
  return receipt
}
// @ts-expect-error: a token is needed.
export const without = () => new Intray({ url: 'https://intray.example', outbox: 'none' })
// @ts-expect-error: a name is text.
export const wrong = () => intray.send({ contact: { name: 7 } })
// @ts-expect-error: there is no such field.
export const unknown = (event: ClaimedEvent) => event.sourceRef
`

const CONSUMER_SETTINGS = {
  compilerOptions: {
    module: 'nodenext',
    target: 'es2022',
    lib: ['es2023'],
    strict: true,
    exactOptionalPropertyTypes: true,
    noEmit: true,
    skipLibCheck: false,
    types: ['node'],
    typeRoots: [join(ROOT, 'node_modules/@types')],
  },
}

describe('the packed client', () => {
  const shared = sharedApp(drivers[0]!)
  const project = tempFolder('consumer')

  const npm = async (args: readonly string[], cwd: string) => {
    const { code, stdout, stderr } = await runToEnd(['npm', '--prefix', cwd, ...args], { NO_UPDATE_NOTIFIER: '1' })
    assert.equal(code, 0, stderr)
    return stdout.toString()
  }

  before(async () => {
    const packed = tempFolder('packed')
    await npm(['pack', '--workspace', '@intray/client', '--pack-destination', packed], ROOT)
    const [tarball] = globSync('*.tgz', { cwd: packed })
    writeFileSync(join(project, 'package.json'), '{ "name": "consumer", "private": true, "type": "module" }')
    await npm(['install', '--offline', '--no-audit', '--no-fund', join(packed, tarball!)], project)
    writeFileSync(join(project, 'program.js'), PROGRAM)
    writeFileSync(join(project, 'typed.ts'), TYPED)
    writeFileSync(join(project, 'tsconfig.json'), JSON.stringify(CONSUMER_SETTINGS))
  })

  test('has no dependencies, and its build alone', () => {
    const folder = join(project, 'node_modules/@intray/client')
    const { dependencies, engines } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'))
    assert.deepEqual([dependencies, engines], [undefined, { node: '>=20' }])
    assert.deepEqual(globSync('**/*.ts', { cwd: folder, exclude: ['**/*.d.ts'] }), [])
    assert.deepEqual(globSync('*', { cwd: join(project, 'node_modules') }), ['@intray'])
    assert.ok(existsSync(join(folder, 'dist/intray.js')))
    // The pinned Node stays the one that runs everything here.
    assert.match(process.version, /^v26\./)
  })

  for (const version of VERSIONS) {
    const node = nodeOf(version)
    const skip = !existsSync(node) && `not run: npm brings no Node ${version} for this machine`
    test(`sends, works and follows on Node ${version}`, { skip }, async () => {
      const outbox = join(tempFolder('outbox'), `outbox-${version}`)
      const { url, token } = shared.app
      const processing = await shared.app.createToken({ scope: 'processor' })
      const command = [node, join(project, 'program.js'), url, token, processing, outbox]
      const { code, stdout, stderr } = await runToEnd(command, {})
      assert.equal(code, 0, stderr)
      const said = JSON.parse(stdout.toString())
      const [text] = said.texts as string[]
      assert.match(text!, new RegExp(`^from v${version}\\.`))
      assert.deepEqual(said, {
        left: { waiting: 0, refused: 0, oldest_at: null },
        texts: [text, text, text],
        followed: 3,
        errors: ['LeaseLost', 'Refused', 'Unavailable'],
      })
      const isSqlite = readFileSync(outbox).toString('latin1', 0, 15) === 'SQLite format 3'
      assert.equal(isSqlite, version >= 22)
    })
  }

  test('the examples of docs/sending/typescript.md run as they are', async (t) => {
    const page = readFileSync(join(ROOT, 'docs/sending/typescript.md'), 'utf8')
    const [send, worker] = Array.from(page.matchAll(/```js\n(import .*?)```/gs), ([, block]) => block!)
    const folder = join(project, 'examples')
    mkdirSync(folder)
    writeFileSync(join(folder, 'send.mjs'), send!)
    writeFileSync(join(folder, 'worker.mjs'), worker!)
    const { app } = shared
    const env = (token: string) => ({ INBOX_URL: app.url, INBOX_TOKEN: token })

    // close() waits for 10 s: on a machine that stands still for as long, the message is left to the next run.
    await until('all is sent', async () => {
      const { stdout, stderr } = await runToEnd([process.execPath, 'send.mjs'], env(app.token), { cwd: folder })
      assert.deepEqual([/^\d+ waiting, 0 refused\n$/.test(stdout.toString()), stderr], [true, ''])
      return stdout.toString().startsWith('0 ')
    })
    const processing = await app.createToken({ scope: 'processor' })
    const working = spawn(process.execPath, ['worker.mjs'], {
      cwd: folder,
      env: { ...process.env, ...env(processing) },
    })
    t.after(() => working.kill('SIGKILL'))
    let said = ''
    working.stdout.on('data', (chunk: Buffer) => (said += chunk))
    await until('the worker has the event', () => said.includes('Do you ship to Gozo?'))
    const closed = once(working, 'close')
    working.kill('SIGTERM')
    assert.deepEqual(await within('the worker to stop', closed), [0, null])
  })

  test("its types hold under a consumer's own settings, libraries checked", async () => {
    const { code, stdout } = await runToEnd([join(ROOT, 'node_modules/.bin/tsc'), '-p', project], {})
    assert.equal(code, 0, stdout.toString())
  })
})
