// HAProxy with the configuration that we publish for cells, changed only where a test must differ: addresses, paths, and the
// certificate.

import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, copyFileSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import net, { type AddressInfo } from 'node:net'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import { hasProgram } from '../../prove/debian.ts'
import { runToEnd } from './command.ts'
import { LAUNCHER, ROOT } from './process.ts'
import { tempFolder } from './temp.ts'
import { until } from './until.ts'

export const HAPROXY_PACKAGES = ['haproxy', 'socat']
export const WITHOUT_HAPROXY = `there is no HAProxy: apt-get install ${HAPROXY_PACKAGES.join(' ')}`
export const hasHaproxy = (): boolean => HAPROXY_PACKAGES.every(hasProgram)

const PUBLISHED = join(ROOT, 'deploy', 'proxy')

export interface Cell {
  readonly name: string
  readonly port: number
  readonly databaseUrl: string
}

export interface CellsProxy {
  readonly port: number
  /** The map as the running HAProxy has it: key id → backend. */
  routes(): Promise<Map<string, string>>
  /** The lines of the map's file, with which HAProxy starts. */
  mapLines(): string[]
  /** Runs the script that keeps the map. */
  updateMap(): Promise<void>
}

/** In front of two cells that are called cell_a and cell_b. */
export async function startCellsProxy(t: TestContext, cells: readonly Cell[]): Promise<CellsProxy> {
  const folder = tempFolder('haproxy')
  chmodSync(folder, 0o755)
  const map = join(folder, 'cells.map')
  const socket = join(folder, 'admin.sock')
  copyFileSync(join(PUBLISHED, 'cells.map'), map)
  const databases = join(folder, 'cells')
  mkdirSync(databases)
  for (const { name, databaseUrl } of cells) writeFileSync(join(databases, name), databaseUrl)

  const file = join(folder, 'haproxy.cfg')
  writeFileSync(file, configOf(cells, { map, socket }))
  const { child, port } = await spawnHaproxy(file)
  const exited = once(child, 'close')
  t.after(async () => {
    child.kill('SIGKILL')
    await exited
  })
  let said = ''
  child.stderr!.on('data', (chunk: Buffer) => (said += chunk))
  await until('HAProxy finds every cell ready', async () => {
    if (child.exitCode !== null) throw new Error(`HAProxy ended: ${said}`)
    const state = await ask(socket, 'show stat up').catch(() => '')
    return cells.every(({ name }) => state.includes(`${name},BACKEND`))
  })
  return {
    port,
    routes: async () => {
      const lines = (await ask(socket, `show map ${map}`)).trim().split('\n')
      return new Map(lines.filter(Boolean).map((line) => line.split(' ').slice(1) as [string, string]))
    },
    mapLines: () => readFileSync(map, 'utf8').trim().split('\n'),
    updateMap: async () => {
      const env = { MAP: map, SOCKET: socket, DATABASES: databases, INTRAY: LAUNCHER }
      const { code, stderr } = await runToEnd([join(PUBLISHED, 'update-cells-map')], env)
      if (code !== 0) throw new Error(`update-cells-map ended with ${code}: ${stderr}`)
    },
  }
}

function configOf(cells: readonly Cell[], { map, socket }: { map: string; socket: string }): string {
  let text = readFileSync(join(PUBLISHED, 'haproxy-cells.cfg'), 'utf8')
  const replace = (from: RegExp, to: string) => {
    if (!from.test(text)) throw new Error(`haproxy-cells.cfg has no ${from}`)
    text = text.replace(from, to)
  }
  replace(/^ +(user|group) haproxy\n +(user|group) haproxy\n/m, '')
  replace(/\/run\/haproxy\/admin\.sock mode 660/, `${socket} mode 600`)
  replace(/\/etc\/haproxy\/cells\.map/, map)
  replace(/bind :443 ssl crt \S+/, 'bind fd@3')
  // A cell that stands still for some seconds is not down.
  replace(/( +timeout http-request .*\n)/, '$1    timeout check 250s\n')
  for (const { name, port } of cells) {
    replace(
      new RegExp(`(backend ${name}\\n.*httpchk.*)(\\n +server .*)+`),
      `$1\n    server one 127.0.0.1:${port} check`,
    )
  }
  return text
}

/** On a port that the system chose: the socket is made here and inherited. */
export async function spawnHaproxy(file: string): Promise<{ child: ChildProcess; port: number }> {
  const server = net.createServer()
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  const { fd } = (server as unknown as { readonly _handle: { readonly fd: number } })._handle
  const path = `${process.env.PATH}:/usr/sbin:/sbin`
  const child = spawn('haproxy', ['-db', '-f', file], {
    env: { ...process.env, PATH: path },
    stdio: ['ignore', 'ignore', 'pipe', fd],
  })
  server.close()
  return { child, port }
}

function ask(socket: string, command: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const connection = net.connect(socket, () => connection.write(`${command}\n`))
    let answer = ''
    connection.on('data', (chunk: Buffer) => (answer += chunk))
    connection.once('error', reject)
    connection.once('close', () => resolve(answer))
  })
}
