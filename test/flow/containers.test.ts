// The image's files and the compose files fit what they run. `npm run prove -- image` builds and runs the image.

import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import http from 'node:http'
import type { AddressInfo } from 'node:net'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { parse } from 'yaml'
import { loadConfig } from '../../src/config.ts'
import { parseDuration } from '../../src/runtime/duration.ts'

const path = (name: string) => fileURLToPath(new URL(`../../deploy/${name}`, import.meta.url))
const read = (name: string) => readFileSync(path(name), 'utf8')
const containerfile = read('container/Containerfile')

interface Service {
  readonly image: string
  readonly environment?: Readonly<Record<string, string>>
  readonly stop_grace_period?: string
  readonly read_only?: boolean
  readonly cap_drop?: readonly string[]
  readonly volumes?: readonly string[]
}

/** Those that run Intray. */
function nodesOf(name: string): Service[] {
  const { services } = parse(read(name), { merge: true }) as { services: Record<string, Service> }
  return Object.values(services).filter(({ image }) => image.startsWith(`\${IMAGE`))
}

test('the compose files give Intray settings that it takes, longer to stop than it takes, and no capabilities', () => {
  const nodes = ['compose/compose.yaml', 'compose/compose.postgres.yaml'].flatMap(nodesOf)
  assert.equal(nodes.length, 3)
  for (const { environment = {}, stop_grace_period, read_only, cap_drop } of nodes) {
    const { stopTimeout } = loadConfig(environment)
    const readyDelay = parseDuration(environment.INTRAY_READY_DELAY ?? '10s')!
    assert.ok(Number.parseInt(stop_grace_period ?? '', 10) * 1000 > readyDelay + stopTimeout)
    assert.deepEqual([read_only, cap_drop], [true, ['ALL']])
  }
})

test('the data of one container is on the volume that the image has for it', () => {
  const [, folder] = /^VOLUME (\S+)$/m.exec(containerfile)!
  assert.match(containerfile, new RegExp(`^WORKDIR ${folder}$`, 'm'))
  assert.deepEqual(nodesOf('compose/compose.yaml')[0]?.volumes, [`data:${folder}`])
})

test('the user of the image is the one of the pod, and not root', () => {
  const [, user] = /^USER (\d+):\1$/m.exec(containerfile)!
  assert.ok(Number(user) > 0)
  assert.match(read('kubernetes/deployment.yaml'), new RegExp(`runAsUser: ${user}\\n`))
})

test('the health check holds while the server answers 200, and fails for another answer and for none', async () => {
  let status = 200
  const asked: (string | undefined)[] = []
  const server = http.createServer((req, res) => {
    asked.push(req.url)
    res.writeHead(status).end()
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  const check = async () => {
    const env = { PATH: process.env.PATH, INTRAY_PORT: String(port) }
    const [code] = await once(spawn(process.execPath, [path('container/health.mjs')], { env, stdio: 'ignore' }), 'exit')
    return code as number
  }
  assert.equal(await check(), 0)
  status = 503
  assert.equal(await check(), 1)
  server.closeAllConnections()
  await new Promise((resolve) => server.close(resolve))
  assert.equal(await check(), 1)
  assert.deepEqual(asked, ['/livez', '/livez'])
})
