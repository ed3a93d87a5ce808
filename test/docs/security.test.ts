// docs/operating/security.md says what is so: the tests it names exist, its pattern finds tokens, and its list of install scripts is the
// lockfile's.

import assert from 'node:assert/strict'
import { existsSync, globSync, readFileSync } from 'node:fs'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { mintToken } from '../../src/auth/token.ts'

const ROOT = new URL('../../', import.meta.url)
const read = (path: string) => readFileSync(new URL(path, ROOT), 'utf8')
const page = read('docs/operating/security.md')

interface Manifest {
  readonly workspaces?: readonly string[]
  readonly dependencies?: Readonly<Record<string, string>>
  readonly devDependencies?: Readonly<Record<string, string>>
  readonly optionalDependencies?: Readonly<Record<string, string>>
  readonly scripts?: Readonly<Record<string, string>>
  readonly allowScripts?: Readonly<Record<string, boolean>>
}

test('each of the ten risks has its line, and every test that the page names exists', () => {
  const rows = page.split('\n').filter((line) => /^\| API\d+ \|/.test(line))
  assert.deepEqual(
    rows.map((row) => row.split(' ')[1]),
    Array.from({ length: 10 }, (_, n) => `API${n + 1}`),
  )
  for (const row of rows) assert.match(row, /`test\/[\w/.-]+\.test\.ts` |`test\/[\w/.-]+\.test\.ts`,/)
  const named = [...page.matchAll(/`(test\/[\w/.-]+)`/g)].map(([, file]) => file!)
  assert.ok(named.length > 20)
  for (const file of named) assert.ok(existsSync(new URL(file, ROOT)), `${file} does not exist`)
})

test('the pattern for secret scanners finds tokens as they are made, and little else', () => {
  const source = /```regex\n(.+)\n```/.exec(page)?.[1]
  assert.ok(source)
  const pattern = new RegExp(source)
  for (let n = 0; n < 500; n++) {
    const { token, keyId } = mintToken()
    for (const text of [
      token,
      `"token":"${token}"`,
      `INTRAY_TOKEN=${token}\n`,
      `Authorization: Bearer ${token}`,
      `?token=${token}&x=1`,
    ])
      assert.equal(pattern.exec(text)?.[0], token)
    assert.doesNotMatch(keyId, pattern)
    assert.doesNotMatch(token.slice(0, -1), pattern)
    assert.doesNotMatch(`${token}x`, pattern)
  }
})

const lock = JSON.parse(read('package-lock.json')) as {
  readonly packages: Record<
    string,
    { readonly hasInstallScript?: boolean; readonly integrity?: string; readonly link?: boolean }
  >
}
const manifest = JSON.parse(read('package.json')) as Manifest

test('every package with an install script is on the reviewed list, and none of them may run', () => {
  const scripted = Object.entries(lock.packages)
    .filter(([, { hasInstallScript }]) => hasInstallScript)
    .map(([path]) => path.slice(path.lastIndexOf('node_modules/') + 'node_modules/'.length))
  const reviewed = [...page.matchAll(/^\| `([^`]+)` \|/gm)].map(([, name]) => name!)
  assert.deepEqual([...new Set(scripted)].toSorted(), reviewed.toSorted())
  for (const name of scripted) assert.equal(manifest.allowScripts?.[name], false, name)
})

test('every dependency is pinned to one version, and every package to a digest', () => {
  const manifests = globSync('{package.json,*/package.json,test/support/*/package.json}', { cwd: fileURLToPath(ROOT) })
  assert.ok(manifests.includes('package.json'))
  for (const file of manifests) {
    const { dependencies, devDependencies, optionalDependencies, scripts } = JSON.parse(read(file)) as Manifest
    for (const [name, version] of Object.entries({ ...dependencies, ...devDependencies, ...optionalDependencies }))
      assert.match(version, /^(\d+\.\d+\.\d+(-[\w.]+)?|file:[\w./-]+)$/, `${file}: ${name} ${version}`)
    for (const hook of ['preinstall', 'install', 'postinstall', 'prepare'])
      assert.equal(scripts?.[hook], undefined, `${file} runs ${hook}`)
  }
  const ours = (path: string) => !path.includes('node_modules/')
  const loose = Object.entries(lock.packages).filter(
    ([path, { integrity, link }]) => !ours(path) && !link && !/^sha512-/.test(integrity ?? ''),
  )
  assert.deepEqual(loose, [])
})

test('the packages that run in the service, and those that build the console, are those that the page tells of', () => {
  const [, service, console] =
    /^- Five packages run in the service: (.*?)\. (?:.*?)The console is built (.*?)\(`INTRAY/ms.exec(page)!
  const named = (text: string) => [...text.matchAll(/`([@\w/-]+)`/g)].map(([, name]) => name!).toSorted()
  const consoleManifest = JSON.parse(read('console/package.json')) as { dependencies: Record<string, string> }
  assert.deepEqual(named(service!), Object.keys(manifest.dependencies ?? {}).toSorted())
  assert.deepEqual(named(console!), Object.keys(consoleManifest.dependencies).toSorted())
})

test('the service opens connections to its database, to a collector that the operator names, and to endpoints through the guard', () => {
  const files = globSync('src/**/*.ts', { cwd: fileURLToPath(ROOT) })
  // Not `http.request.method`, the name of an attribute.
  const opening =
    /\bfetch\(|@opentelemetry\/exporter|\b(?:https?|net|tls)\.(?:request|get|connect|createConnection)\b(?!\.)|\bimport \{[^}]*\b(?:connect|request)\b[^}]*\} from 'node:(?:net|tls|https?)'/
  const openers = files.filter((file) => opening.test(read(file)))
  // The commands are run by hand, and go where they are told to.
  assert.deepEqual(
    openers.filter((file) => !file.startsWith('src/cli/') && !file.startsWith('src/store/postgres/')).toSorted(),
    ['src/processing/push/http-client.ts', 'src/runtime/otlp-export.ts'],
  )
  assert.match(read('kits/typescript/src/http-client.ts'), opening, 'the pattern finds those that do')
})
