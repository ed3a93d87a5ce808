// The receivers of docs/processing/push.md, as they stand there, each in its own language: they take what the service signs, and nothing else.

import assert from 'node:assert/strict'
import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { startTestApp } from '../support/app.ts'
import { drivers } from '../support/drivers.ts'
import { jsonHeaders } from '../support/intake.ts'
import { freePort } from '../support/port.ts'
import { ROOT } from '../support/process.ts'
import { tempFolder } from '../support/temp.ts'
import { until } from '../support/until.ts'

const PAGE = readFileSync(join(ROOT, 'docs/processing/push.md'), 'utf8')
const SECRET = `whsec_${Buffer.alloc(32, 9).toString('base64')}`

interface Language {
  readonly file: string
  readonly command: (file: string, port: number) => readonly string[]
  readonly check: readonly [string, ...string[]]
}

const LANGUAGES: Record<string, Language> = {
  ts: { file: 'receiver.mts', command: (file) => [process.execPath, file], check: [process.execPath, '--version'] },
  php: {
    file: 'receiver.php',
    command: (file, port) => ['php', '-S', `127.0.0.1:${port}`, file],
    check: ['php', '--version'],
  },
  python: { file: 'receiver.py', command: (file) => ['python3', '-u', file], check: ['python3', '--version'] },
}

for (const [language, { file, command, check }] of Object.entries(LANGUAGES)) {
  const isMissing = spawnSync(check[0], check.slice(1), { stdio: 'ignore' }).status !== 0
  const skip = isMissing && `not run: this machine has no ${check[0]}`
  test(`the receiver in ${language} takes a signed event and refuses another`, { skip }, async (t) => {
    const [, example] = new RegExp(`\`\`\`${language}\n(.*?)\`\`\``, 's').exec(PAGE)!
    const folder = tempFolder('receiver')
    writeFileSync(join(folder, file), example!)
    symlinkSync(join(ROOT, 'node_modules'), join(folder, 'node_modules'))
    const port = await freePort()
    const said = await start(t, command(join(folder, file), port), { WEBHOOK_SECRET: SECRET, PORT: String(port) })
    const url = `http://127.0.0.1:${port}/`
    await until('it listens', () =>
      fetch(url, { method: 'POST', body: '{}' }).then(
        ({ status }) => status === 401,
        () => false,
      ),
    )

    const app = await startTestApp(t, drivers[0]!, { settings: { pushAllow: 'loopback' } })
    const token = await app.createToken({ scope: 'processor' })
    const call = (path: string, body: object) =>
      app.send({ method: 'POST', path, headers: jsonHeaders(token), body: JSON.stringify(body) })
    const endpoint = { url, secret: SECRET, timeout_s: 60 }
    assert.equal((await call('/v1/inbox/subscriptions/default/endpoint', endpoint)).status, 200)
    const { id } = (await app.post({ text: 'hello' })).json!
    await until('it says which event came', () => new RegExp(`event ${id} as evt_${id}_`).test(said()))
    const tested = await call('/v1/inbox/subscriptions/default/endpoint/test', {})
    assert.equal((tested.json!.test as { status: number }).status, 204)
    await call('/v1/inbox/subscriptions/default/endpoint/secret', {})
    const refused = await call('/v1/inbox/subscriptions/default/endpoint/test', {})
    assert.equal((refused.json!.test as { status: number }).status, 401, 'signed with a secret that it does not know')
  })
}

/** What the program has said so far. */
async function start(t: TestContext, [name = '', ...args]: readonly string[], env: Record<string, string>) {
  const child: ChildProcess = spawn(name, args, {
    env: { PATH: process.env.PATH, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let said = ''
  child.stdout!.on('data', (chunk: Buffer) => (said += chunk))
  child.stderr!.on('data', (chunk: Buffer) => (said += chunk))
  const exited = once(child, 'close')
  t.after(async () => {
    if (child.exitCode === null) child.kill('SIGKILL')
    await exited
  })
  return () => said
}
