// Test files cannot disturb each other through PostgreSQL: each process has a server of its own, which ends with it.

import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, existsSync } from 'node:fs'
import { type TestContext, test } from 'node:test'
import { ask } from '../../support/postgres/ask.ts'
import { serverUrl } from '../../support/postgres/databases.ts'
import { tempFolder } from '../../support/temp.ts'
import { until } from '../../support/until.ts'

const DATABASES = new URL('../../support/postgres/databases.ts', import.meta.url)
/** Uses PostgreSQL as a test file does, says where, and ends when its standard input does. */
const SCRIPT = `import { serverUrl } from '${DATABASES}'
process.stdout.write(await serverUrl())
process.stdin.resume()`

async function startFile(t: TestContext) {
  // One that is killed cannot remove a root of its own. Its server may run as another user.
  const root = tempFolder('file')
  chmodSync(root, 0o755)
  const child = spawn(process.execPath, ['--input-type=module', '-e', SCRIPT], {
    env: { ...process.env, TEST_ROOT: root },
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  const exited = once(child, 'exit')
  t.after(() => {
    child.kill('SIGKILL')
    return exited
  })
  const [url] = (await once(child.stdout, 'data')) as [Buffer]
  return { child, exited, url: url.toString(), folder: await dataFolderOf(url.toString()) }
}

const dataFolderOf = (url: string): Promise<string> => ask(url, 'SHOW data_directory')

/** Another file's server may have its port by then. */
async function untilGone({ url, folder }: { readonly url: string; readonly folder: string }): Promise<void> {
  await until('the server is gone', () =>
    dataFolderOf(url).then(
      (found) => found !== folder,
      () => true,
    ),
  )
}

test('two processes have two servers; one that exits leaves neither its server nor its files', async (t) => {
  const files = await Promise.all([startFile(t), startFile(t)])
  assert.equal(new Set([...files.map(({ url }) => url), await serverUrl()]).size, 3)
  const [ending, other] = files
  ending!.child.stdin.end()
  assert.deepEqual(await ending!.exited, [0, null])
  await untilGone(ending!)
  assert.equal(existsSync(ending!.folder), false)
  assert.equal(await dataFolderOf(other!.url), other!.folder, 'the other goes on')
})

test('a process that is killed leaves no server', async (t) => {
  const file = await startFile(t)
  file.child.kill('SIGKILL')
  await untilGone(file)
})
