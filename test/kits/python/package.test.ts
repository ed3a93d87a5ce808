// The Python package as its users get it: nothing but the standard library, types as the contract has them, examples that run.

import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, type TestContext, test } from 'node:test'
import { parse } from 'yaml'
import { runToEnd } from '../../support/command.ts'
import { drivers } from '../../support/drivers.ts'
import { ROOT } from '../../support/process.ts'
import { missingPython, PYTHON } from '../../support/python.ts'
import { sharedApp } from '../../support/shared-app.ts'
import { tempFolder } from '../../support/temp.ts'
import { until, within } from '../../support/until.ts'
import { PYTHON_KIT, pythonEnvironment } from './kit.ts'

/** Without the packages of the machine. */
const PROGRAM = [PYTHON, '-S', '-B']

interface Schemas {
  readonly components: { readonly schemas: Record<string, { properties: object; required?: readonly string[] }> }
}

describe('the Python package', { skip: missingPython() }, () => {
  const shared = sharedApp(drivers[0]!)

  const run = async (program: string, args: readonly string[] = []) => {
    const { code, stdout, stderr } = await runToEnd([...PROGRAM, '-c', program, ...args], { PYTHONPATH: PYTHON_KIT })
    assert.equal(code, 0, stderr)
    return stdout.toString()
  }

  test('its types have the fields of the contract, required ones as such', async () => {
    const program = `
import json, intray
print(json.dumps({kind.__name__: [sorted(kind.__annotations__), sorted(kind.__required_keys__)]
                  for kind in (intray.ClaimedEvent, intray.FollowedEvent, intray.Receipt)}))`
    const found = JSON.parse(await run(program)) as Record<string, [string[], string[]]>
    const { components } = parse(readFileSync(join(ROOT, 'api/openapi.yaml'), 'utf8')) as Schemas
    for (const [name, fields] of Object.entries(found)) {
      const { properties, required = [] } = components.schemas[name]!
      assert.deepEqual(fields, [Object.keys(properties).toSorted(), required.toSorted()], name)
    }
    assert.equal(Object.keys(found).length, 3)
  })

  test('a client that was made before a fork says so in the child, and goes on in its parent', async () => {
    const program = `
import os, sys, intray
client = intray.Intray(sys.argv[1], sys.argv[2], outbox=sys.argv[3])
pid = os.fork()
if pid == 0:
    try:
        client.send({})
    except RuntimeError as error:
        os.write(1, str(error).encode())
    os._exit(0)
os.waitpid(pid, 0)
client.send({})
print(" left", client.close(60).waiting)`
    const { url, token } = shared.app
    const said = await run(program, [url, token, join(tempFolder('fork'), 'outbox.db')])
    assert.match(said, /^The client was made before this process was forked\..* left 0\n$/)
  })

  test('what cannot be an address, a token, an outbox or a message is refused at once', async () => {
    const program = `
import intray
def tries(*args, **options):
    try:
        intray.Intray(*args, **options)
    except ValueError as error:
        print(error)
tries("ftp://h", "itr_a", outbox="none")
tries("https://user:secret@h", "itr_a", outbox="none")
tries("https://h", "itr_a\\nb", outbox="none")
tries("https://h", "itr_a", outbox="")
tries("https://h", "itr_a", outbox="none", concurrency=0)
client = intray.Intray("https://h", "itr_a", outbox="none")
for message in (["a"], {"a": float("nan")}, {"a": object()}):
    try:
        client.send(message)
    except (TypeError, ValueError) as error:
        print(type(error).__name__)`
    const said = await run(program)
    assert.deepEqual(said.split('\n'), [
      'url is not an address such as https://intray.example.',
      'url has a user or a password. Remove it.',
      'token is empty, or has characters that no token has.',
      'outbox is missing. Name a file for it, or "none".',
      'concurrency is a number from 1.',
      'TypeError',
      'ValueError',
      'TypeError',
      '',
    ])
  })

  test('the examples of docs/sending/python.md run as they are', async (t: TestContext) => {
    const page = readFileSync(join(ROOT, 'docs/sending/python.md'), 'utf8')
    const [send, worker] = Array.from(page.matchAll(/```py\n(import .*?)```/gs), ([, block]) => block!)
    const folder = tempFolder('examples')
    writeFileSync(join(folder, 'app.py'), send!)
    writeFileSync(join(folder, 'worker.py'), worker!)
    const { app } = shared
    const env = (token: string) => ({ INBOX_URL: app.url, INBOX_TOKEN: token, PYTHONPATH: PYTHON_KIT })

    await until('the example has sent its message', async () => {
      const { stdout, stderr } = await runToEnd([...PROGRAM, '-W', 'error', 'app.py'], env(app.token), { cwd: folder })
      assert.equal(stderr, '')
      return stdout.toString() === '0 waiting, 0 refused\n'
    })
    const processing = await app.createToken({ scope: 'processor' })
    const [python, ...args] = PROGRAM
    const working = spawn(python!, [...args, '-W', 'error', '-u', 'worker.py'], {
      cwd: folder,
      env: pythonEnvironment(env(processing)),
    })
    t.after(() => working.kill('SIGKILL'))
    let said = ''
    for (const stream of [working.stdout, working.stderr]) stream.on('data', (chunk: Buffer) => (said += chunk))
    await until('the worker has the event', () => {
      assert.equal(working.exitCode, null, said)
      return said.includes('Do you ship to Gozo?')
    })
    const closed = once(working, 'close')
    working.kill('SIGTERM')
    assert.deepEqual(await within('the worker to stop', closed), [0, null], said)
  })
})
