// nginx, HAProxy and Caddy in front of nodes, with the configuration that we publish, changed only where a test must differ:
// addresses, paths and the certificate.

import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync, writeFileSync } from 'node:fs'
import net, { type AddressInfo } from 'node:net'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import { hasProgram } from '../../prove/debian.ts'
import { send } from './client.ts'
import { hasHaproxy, spawnHaproxy } from './haproxy.ts'
import { ROOT } from './process.ts'
import { tempFolder } from './temp.ts'
import { until } from './until.ts'

export const PROXY_PACKAGES = ['nginx', 'haproxy', 'caddy']
export const WITHOUT_PROXIES = `there are not all three proxies: apt-get install ${PROXY_PACKAGES.join(' ')}`
export const hasProxies = (): boolean => PROXY_PACKAGES.every(hasProgram) && hasHaproxy()

export interface RunningProxy {
  readonly name: string
  readonly port: number
}

/** In place of the published one: a stop takes three checks, and this is what the test waits for. */
const QUICK_CHECK = '200ms'
/** In place of the published one: a node that stands still for some seconds is not down. */
const PATIENT_CHECK = '60s'

interface Started {
  readonly child: ChildProcess
  readonly port: number
}

type Start = (nodes: readonly [number, number], folder: string) => Promise<Started>

/** In front of two nodes on these ports, and seen to reach one. */
export async function startProxies(t: TestContext, nodes: readonly [number, number]): Promise<RunningProxy[]> {
  const starts: Record<string, Start> = { nginx: startNginx, HAProxy: startHaproxy, Caddy: startCaddy }
  return Promise.all(
    Object.entries(starts).map(async ([name, start]) => {
      const { child, port } = await start(nodes, tempFolder(name))
      const exited = once(child, 'close')
      t.after(async () => {
        // A killed nginx would leave its worker.
        child.kill('SIGTERM')
        await exited
      })
      let said = ''
      child.stderr!.on('data', (chunk: Buffer) => (said = (said + chunk).slice(-4000)))
      await until(`${name} reaches a node`, async () => {
        if (child.exitCode !== null || child.signalCode !== null) throw new Error(`${name} ended: ${said}`)
        const answer = await send(port, { path: '/readyz' }).catch(() => null)
        return answer?.status === 200
      })
      return { name, port }
    }),
  )
}

function published(file: string, changes: readonly (readonly [from: RegExp, to: string])[]): string {
  let text = readFileSync(join(ROOT, 'deploy', 'proxy', file), 'utf8')
  for (const [from, to] of changes) {
    if (!from.test(text)) throw new Error(`${file} has no ${from}`)
    text = text.replace(from, to)
  }
  return text
}

/** It takes over the socket like a new nginx takes over that of an old one. */
const startNginx: Start = async ([one, two], folder) => {
  const { server, port, fd } = await listen()
  const site = published('nginx.conf', [
    [/10\.0\.0\.1:8080/, `127.0.0.1:${one}`],
    [/10\.0\.0\.2:8080/, `127.0.0.1:${two}`],
    [/listen 443 ssl;/, `listen 127.0.0.1:${port};`],
    [/ +ssl_certificate .*\n +ssl_certificate_key .*\n/, ''],
  ])
  const paths = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(
    (kind) => `${kind}_temp_path ${folder}/${kind};`,
  )
  const file = join(folder, 'nginx.conf')
  writeFileSync(
    file,
    `daemon off; user root; worker_processes 1; pid ${folder}/pid; error_log stderr warn;
    events {} http { access_log off; ${paths.join(' ')}\n${site} }`,
  )
  const child = spawnProxy('nginx', ['-e', 'stderr', '-c', file], { NGINX: '3;' }, fd)
  server.close()
  return { child, port }
}

const startHaproxy: Start = async ([one, two], folder) => {
  const file = join(folder, 'haproxy.cfg')
  const site = published('haproxy.cfg', [
    [/^ +user haproxy\n +group haproxy\n/m, ''],
    [/bind :443 ssl crt \S+/, 'bind fd@3'],
    // Intray knows proxies by their addresses, and Caddy has the other one.
    [/default-server/, 'source 127.0.0.2\n    default-server'],
    [/500ms/, QUICK_CHECK],
    [/(timeout check) 5s/, `$1 ${PATIENT_CHECK}`],
    [/10\.0\.0\.1:8080/, `127.0.0.1:${one}`],
    [/10\.0\.0\.2:8080/, `127.0.0.1:${two}`],
  ])
  writeFileSync(file, site)
  return spawnHaproxy(file)
}

/** On a port that was free: it cannot take over a socket. */
const startCaddy: Start = async ([one, two], folder) => {
  const { server, port } = await listen()
  server.close()
  await once(server, 'close')
  const file = join(folder, 'Caddyfile')
  const site = published('Caddyfile', [
    [/10\.0\.0\.1:8080 10\.0\.0\.2:8080/, `127.0.0.1:${one} 127.0.0.1:${two}`],
    [/500ms/, QUICK_CHECK],
    [/(health_timeout) 5s/, `$1 ${PATIENT_CHECK}`],
    [/^\{$/m, '{\n\tadmin off'],
    [/inbox\.example\.org \{/, `http://127.0.0.1:${port} {`],
  ])
  writeFileSync(file, site)
  const args = ['run', '--adapter', 'caddyfile', '--config', file]
  const child = spawnProxy('caddy', args, { HOME: folder, XDG_DATA_HOME: folder, XDG_CONFIG_HOME: folder })
  return { child, port }
}

function spawnProxy(program: string, args: readonly string[], env: Record<string, string>, fd?: number): ChildProcess {
  return spawn(program, args, {
    env: { ...process.env, PATH: `${process.env.PATH}:/usr/sbin:/sbin`, ...env },
    stdio: ['ignore', 'ignore', 'pipe', ...(fd === undefined ? [] : [fd])],
  })
}

/** On a port that the system chose. */
async function listen(): Promise<{ server: net.Server; port: number; fd: number }> {
  const server = net.createServer()
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { fd } = (server as unknown as { readonly _handle: { readonly fd: number } })._handle
  return { server, port: (server.address() as AddressInfo).port, fd }
}
