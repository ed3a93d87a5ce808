// The package as `npm i -g` installs it: on a machine that has Node 20, away from the checkout that it was packed in.

import assert from 'node:assert/strict'
import { existsSync, globSync, lstatSync, readFileSync, realpathSync, renameSync, statSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { before, describe, test } from 'node:test'
import { hasProgram } from '../../prove/debian.ts'
import { runToEnd } from '../support/command.ts'
import { type Installed, installIntray, type Packed, packIntray } from '../support/npm-package.ts'
import { newPostgresDatabase } from '../support/postgres/databases.ts'
import { LAUNCHER, ROOT, startServer } from '../support/process.ts'
import { tempFolder } from '../support/temp.ts'
import { until, within } from '../support/until.ts'

const NODE_20 = join(ROOT, `test/support/node-20/node_modules/node-linux-${process.arch}/bin/node`)
const SKIP =
  (!existsSync(NODE_20) && 'not run: npm brings no Node 20 for this machine') ||
  (!hasProgram('curl') && 'not run: this machine has no curl')
const manifest = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'))
const MAX_BYTES = 6_000_000

/** Node 20 is the only Node on it. */
const PATH = [dirname(NODE_20), ...process.env.PATH!.split(':').filter((folder) => !folder.startsWith(ROOT))].join(':')

/** What the README says: the address is that of the server, the token that of the environment. */
function readmeLine(url: string): string {
  const [block] = /^curl -sS \S+\/v1\/inbox\/events \\\n.*?\}'$/ms.exec(readFileSync(join(ROOT, 'README.md'), 'utf8'))!
  return block.replace('http://127.0.0.1:8080', url)
}

describe('the npm package', { skip: SKIP }, () => {
  let packed: Packed
  let installed: Installed
  let folder: string

  const run = (command: readonly string[], env: Record<string, string> = {}) =>
    runToEnd(command, { PATH, ...env }, { cwd: folder })
  const serve = (...flags: string[]) => [
    'sh',
    '-c',
    `cd ${folder} && exec ${installed.intray} serve ${flags.join(' ')}`,
  ]

  before(async () => {
    packed = await packIntray()
    installed = await installIntray(packed.tarball, NODE_20)
    folder = tempFolder('anywhere')
  })

  test('has what runs and its documents, and nothing of tests, benchmarks, proofs and sources', () => {
    const own = packed.paths.filter((path) => !path.startsWith('node_modules/'))
    assert.deepEqual([...new Set(own.map((path) => path.replace(/\/.*/, '/')))].toSorted(), [
      'CHANGELOG.md',
      'LICENSE',
      'README.md',
      'SECURITY.md',
      'deploy/',
      'dist/',
      'docs/',
      'intray',
      'package.json',
    ])
    const parts = own.filter((path) => path.startsWith('dist/')).map((path) => path.split('/').slice(1, 3).join('/'))
    const apart = [...new Set(parts)].filter((part) => !part.startsWith('src/')).toSorted()
    assert.deepEqual(apart, ['api/openapi.yaml', 'console/dist', 'kits/typescript', 'package.json'])
    assert.deepEqual(
      own.filter((path) => /\.tsx?$|\.test\.|deploy\/npm/.test(path)),
      [],
    )
    const sources = globSync('src/**/*.{ts,sql}', { cwd: ROOT }).map((path) => `dist/${path.replace(/\.ts$/, '.js')}`)
    assert.deepEqual(own.filter((path) => path.startsWith('dist/src/')).toSorted(), sources.toSorted())
    assert.ok(statSync(packed.tarball).size < MAX_BYTES)
  })

  test('npm fetches nothing for it but what is optional, such as Node 26', () => {
    const { dependencies, bundleDependencies, optionalDependencies } = manifest
    assert.deepEqual(bundleDependencies, Object.keys(dependencies))
    assert.deepEqual(installed.fetched, Object.keys(optionalDependencies).toSorted())
  })

  test('it names no file outside of the prefix', () => {
    const { prefix } = installed
    const paths = globSync('**/*', { cwd: prefix }).map((path) => join(prefix, path))
    assert.ok(paths.length > packed.paths.length)
    for (const path of paths.filter((one) => lstatSync(one).isSymbolicLink()))
      assert.ok(realpathSync(path).startsWith(realpathSync(prefix)), path)
    const texts = paths.filter(
      (path) => /\.(js|json|css|html|map|yaml|sql)$|\/intray$/.test(path) && statSync(path).isFile(),
    )
    const naming = texts.filter((path) => readFileSync(path).includes(ROOT))
    assert.ok(texts.length > 500)
    assert.deepEqual(naming, [])
  })

  test('the command says its version and what it can do, under the name that it is installed by', async () => {
    const said = await run([installed.intray, '--version'])
    assert.deepEqual([said.code, said.stdout.toString(), said.stderr], [0, `intray ${manifest.version}\n`, ''])
    // Loads the file of every command.
    const help = await run([installed.intray, '--help'])
    assert.deepEqual([help.code, help.stderr], [0, ''])
    const ofCheckout = await run([LAUNCHER, '--help'])
    assert.equal(help.stdout.toString(), ofCheckout.stdout.toString().replaceAll('./intray', 'intray'))
  })

  test('the first start serves the line of the README, the console and the API page, and doctor finds nothing wrong', async (t) => {
    const server = await startServer(t, { PATH }, serve())
    const token = await until('the starter token is printed', () => /\bitr_\w+/.exec(server.stdout())?.[0])
    const line = readmeLine(server.url)
    const sent = []
    for (let n = 0; n < 2; n++) sent.push((await run(['sh', '-c', line], { TOKEN: token })).stdout.toString())
    assert.deepEqual(sent, ['{"ok":true,"id":1}', '{"ok":true,"id":1,"duplicate":true}'])

    const page = await (await fetch(`${server.url}/console`)).text()
    const [, script] = /<script type="module" crossorigin src="(\/console\/assets\/[\w-]+\.js)">/.exec(page)!
    assert.equal((await fetch(server.url + script)).status, 200)
    // Rendered by a thread.
    assert.match(await (await fetch(`${server.url}/docs`)).text(), /\/v1\/inbox\/events/)

    const doctor = await run([installed.intray, 'doctor'])
    assert.equal(doctor.code, 0, doctor.stdout.toString() + doctor.stderr)
    // Another thread.
    const backup = await run([installed.intray, 'backup', 'backup.db'])
    assert.equal(backup.code, 0, backup.stderr)
    assert.ok(existsSync(join(folder, 'backup.db')))
    server.child.kill('SIGTERM')
    assert.equal(await within('the server to stop', server.exited), 0)
    assert.doesNotMatch(server.stdout() + server.stderr(), /\.\/intray|could not be built/)
  })

  test('worker processes serve PostgreSQL', async (t) => {
    const url = await newPostgresDatabase()
    const init = await run([installed.intray, 'init'], { INTRAY_DATABASE_URL: url })
    assert.equal(init.code, 0, init.stderr)
    const env = { PATH, INTRAY_DATABASE_URL: url, INTRAY_WORKERS: '2' }
    const server = await startServer(t, env, serve())
    assert.match(server.stdout(), / with 2 workers\n/)
    const token = await until('the starter token is printed', () => /\bitr_\w+/.exec(server.stdout())?.[0])
    const { stdout } = await run(['sh', '-c', readmeLine(server.url)], { TOKEN: token })
    assert.equal(stdout.toString(), '{"ok":true,"id":1}')
    server.child.kill('SIGTERM')
    assert.equal(await within('the server to stop', server.exited), 0)
  })

  test('the command finds its Node beside the package too, and says what to do where there is none', async () => {
    const modules = join(installed.prefix, 'lib/node_modules')
    const name = `node-${process.platform}-${process.arch}`
    renameSync(join(modules, 'intray/node_modules', name), join(modules, name))
    assert.equal((await run([installed.intray, '--version'])).code, 0)
    renameSync(join(modules, name), join(modules, 'elsewhere'))
    const { code, stderr } = await run([installed.intray, '--version'])
    assert.equal(code, 1)
    assert.match(stderr, /^intray: npm has not installed Node 26 with this package\. Install it again, /)
  })
})
