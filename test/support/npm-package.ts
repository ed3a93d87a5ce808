// The npm package, made of this checkout and installed into an empty prefix as `npm i -g` does it. A registry of the test's own
// has the packages that bring Node, and no other that npm might ask for.

import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { copyFileSync, globSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import http from 'node:http'
import type { AddressInfo } from 'node:net'
import { delimiter, dirname, join } from 'node:path'
import { runToEnd } from './command.ts'
import { ROOT } from './process.ts'
import { tempFolder } from './temp.ts'

export interface Packed {
  readonly tarball: string
  /** Of its files, from the package's own folder. */
  readonly paths: readonly string[]
}

export interface Installed {
  readonly prefix: string
  /** The command. */
  readonly intray: string
  /** The names of the packages that npm asked for. */
  readonly fetched: readonly string[]
}

export async function packIntray(): Promise<Packed> {
  const folder = tempFolder('packed')
  const [said] = JSON.parse(await npm(['pack', '--json', '--pack-destination', folder], { cwd: ROOT })) as [
    { filename: string; files: { path: string }[] },
  ]
  return { tarball: join(folder, said.filename), paths: said.files.map(({ path }) => path) }
}

/** `node` runs npm. */
export async function installIntray(tarball: string, node: string): Promise<Installed> {
  const prefix = tempFolder('prefix')
  const fetched = new Set<string>()
  const registry = await startRegistry((name) => fetched.add(name))
  try {
    const { port } = registry.address() as AddressInfo
    const from = ['--registry', `http://127.0.0.1:${port}`, '--cache', tempFolder('npm-cache')]
    await npm(['install', '--global', '--prefix', prefix, ...from, tarball], { cwd: prefix, node })
  } finally {
    registry.closeAllConnections()
    registry.close()
  }
  const [placeholder] = globSync('lib/node_modules/intray/node_modules/node*/bin/node', { cwd: prefix })
  copyFileSync(process.execPath, join(prefix, placeholder!))
  return { prefix, intray: join(prefix, 'bin/intray'), fetched: [...fetched].toSorted() }
}

interface Run {
  readonly cwd: string
  readonly node?: string
}

async function npm(args: readonly string[], { cwd, node = process.execPath }: Run): Promise<string> {
  // The first line of npm looks for a Node there.
  const path = [dirname(node), process.env.PATH].join(delimiter)
  const command = ['npm', ...args, '--no-update-notifier', '--no-audit', '--no-fund']
  const { code, stdout, stderr } = await runToEnd(command, { PATH: path }, { cwd })
  assert.equal(code, 0, stderr)
  return stdout.toString()
}

interface LockedPackage {
  readonly version: string
  readonly os: readonly string[]
  readonly cpu: readonly string[]
  readonly bin: object
}

const lock = JSON.parse(readFileSync(join(ROOT, 'package-lock.json'), 'utf8')) as {
  readonly packages: Record<string, LockedPackage>
}

/** Knows the packages that bring Node, as the lockfile does, and has the one of this machine. */
async function startRegistry(onRequest: (name: string) => void): Promise<http.Server> {
  const server = http.createServer((req, res) => {
    const [, name = '', file] = req.url!.split('/').map(decodeURIComponent)
    onRequest(name)
    const known = /^node(-bin)?-\w+-\w+$/.test(name) ? lock.packages[`node_modules/${name}`] : undefined
    if (!known) return res.writeHead(404).end()
    if (file !== undefined) return sendTarball(name, res)
    const { version, os, cpu, bin } = known
    const dist = { tarball: `http://${req.headers.host}/${name}/${name}.tgz` }
    const versions = { [version]: { name, version, os, cpu, bin, dist } }
    return res
      .writeHead(200, { 'Content-Type': 'application/json' })
      .end(JSON.stringify({ name, 'dist-tags': { latest: version }, versions }))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return server
}

/** Has an empty program: to pack, send, hash and unpack 120 MB would take longer than all else. The program is copied to its place. */
function sendTarball(name: string, res: http.ServerResponse): void {
  const folder = tempFolder('registry')
  mkdirSync(join(folder, 'package/bin'), { recursive: true })
  writeFileSync(join(folder, 'package/bin/node'), '', { mode: 0o755 })
  copyFileSync(join(ROOT, 'node_modules', name, 'package.json'), join(folder, 'package/package.json'))
  res.end(execFileSync('tar', ['-czf', '-', '-C', folder, 'package']))
}
