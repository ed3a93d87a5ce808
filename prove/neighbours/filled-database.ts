// The database that each attack starts on: it has a victim's tenant and an attacking tenant with thousands of events. It is
// filled once, over HTTP, and copied for each attack.

import { cpSync, mkdtempSync, rmSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { createDatabase, withClient } from '../../test/support/postgres/databases.ts'
import type { ProofContext } from '../proof.ts'
import { Service, TENANT } from '../service.ts'
import { ATTACKING_TENANT, type Target } from './attack.ts'
import { ref } from './attacks/refs.ts'
import { bearer, requestBytes, Wire } from './wire.ts'

const LOADERS = 64
const VICTIMS_EVENTS = 200
const CHANNELS = 500
const LARGE_TEXT = 900_000
const LIMIT_MS = 120_000

export interface FilledDatabase {
  readonly env: Readonly<Record<string, string>>
  readonly victim: { readonly senderToken: string; readonly processorToken: string }
  readonly attacker: Omit<Target, 'port'>
  /** A database of its own; `drop` removes it once no service uses it. */
  copy(): Promise<{ readonly url: string; drop(): Promise<void> }>
}

export async function fillDatabase(context: ProofContext, launcher: string, events: number): Promise<FilledDatabase> {
  const databaseUrl = await context.newDatabase()
  const env = { NODE_COMPILE_CACHE: join(context.folder, 'compile-cache') }
  const service = new Service(context, { databaseUrl, env, launcher })
  // The first command creates the schema.
  const victimSender = await service.mint('cf', TENANT)
  const [victimProcessor, senderToken, processorToken] = await Promise.all([
    service.mint('processor', TENANT),
    service.mint('cf', ATTACKING_TENANT),
    service.mint('processor', ATTACKING_TENANT),
  ])
  const victim = { senderToken: victimSender, processorToken: victimProcessor }
  const own = { senderToken, processorToken }
  await service.start()
  const cookie = await signIn(service)
  const { port } = service
  await load(port, victim.senderToken, VICTIMS_EVENTS, () => eventBody(`c${ref(2)}`))
  const { first } = await load(port, own.senderToken, events, (n) =>
    eventBody(n % 4 === 0 ? 'huge' : `c${n % CHANNELS}`),
  )
  const [largeEventId] = (await load(port, own.senderToken, 1, () => `{"text":"${'x'.repeat(LARGE_TEXT)}"}`)).ids
  await indexed(port, own.processorToken)
  await indexed(port, victim.processorToken)
  await drain(port, victim.processorToken)
  const code = await service.stop()
  if (code !== 0) throw new Error(`the service that filled the database ended with ${code}`)
  return {
    env,
    victim,
    attacker: { ...own, cookie, conversationId: first, largeEventId: largeEventId! },
    copy: () => (databaseUrl.startsWith('sqlite:') ? copyOfFile(context, databaseUrl) : copyOfDatabase(databaseUrl)),
  }
}

function eventBody(channel: string): string {
  const text = Array.from({ length: 8 }, () => ref(6)).join(' ')
  const contact = { name: `${ref(5)} ${ref(8)}`, email: `${ref(8)}@example.org` }
  return JSON.stringify({ source_ref: ref(16), channel_ref: channel, contact, message: { type: 'text', text } })
}

/** Resolves with the ids, and with the id of the first body. */
async function load(port: number, token: string, count: number, bodyOf: (n: number) => string) {
  const ids: number[] = []
  let begun = 0
  let first = 0
  const giveUpAt = performance.now() + LIMIT_MS
  const one = async (wire: Wire) => {
    const n = begun++
    const request = requestBytes({ path: '/v1/inbox/events', body: bodyOf(n), headers: [bearer(token)] })
    for (;;) {
      const { status, body } = await wire.ask(request, true)
      if (status === 503 && performance.now() < giveUpAt) continue
      if (status !== 200) throw new Error(`an event was answered ${status}: ${body}`)
      const id = Number(/"id":(\d+)/.exec(body!)?.[1])
      if (n === 0) first = id
      ids.push(id)
      return
    }
  }
  const wires = Array.from({ length: Math.min(LOADERS, count) }, () => new Wire({ port }))
  // The first alone, so that it begins its conversation.
  await one(wires[0]!)
  await Promise.all(
    wires.map(async (wire) => {
      while (begun < count) await one(wire)
      wire.close()
    }),
  )
  return { ids, first }
}

/** The service holds a list until its index is complete, and says where it is not. */
async function indexed(port: number, token: string): Promise<void> {
  const wire = new Wire({ port })
  const request = requestBytes({ path: '/v1/inbox/events?limit=1', headers: [bearer(token)] })
  const giveUpAt = performance.now() + LIMIT_MS
  for (;;) {
    const { status, body } = await wire.ask(request, true)
    if (status === 200 && !body!.includes('"index_lag"')) break
    if (performance.now() > giveUpAt) throw new Error('the index of the database was not complete in time')
  }
  wire.close()
}

/** Leaves nothing to claim. */
async function drain(port: number, token: string): Promise<void> {
  const wire = new Wire({ port })
  const ask = async (path: string, body: object) => {
    const answer = await wire.ask(requestBytes({ path, body: JSON.stringify(body), headers: [bearer(token)] }), true)
    if (answer.status !== 200) throw new Error(`${path} was answered ${answer.status}: ${answer.body}`)
    return JSON.parse(answer.body!) as { events: { id: number; lease_id: string }[] }
  }
  for (;;) {
    const { events } = await ask('/v1/inbox/claims', { limit: 200, lease_s: 60 })
    if (events.length === 0) break
    await ask('/v1/inbox/claims/ack', { events: events.map(({ id, lease_id }) => ({ id, lease_id })) })
  }
  wire.close()
}

async function signIn(service: Service): Promise<string> {
  const { account, company } = ATTACKING_TENANT
  const args = ['operator', 'add', 'mallory', '--role', 'admin', '--tenant', `${account}/${company}`, '--json']
  const { code, stdout, stderr } = await service.command(args)
  const link = /#link=([^"\s]+)/.exec(stdout)?.[1]
  if (code !== 0 || link === undefined) throw new Error(`no operator was made: ${stderr}`)
  const answer = await fetch(`http://127.0.0.1:${service.port}/v1/console/session`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify({ link }),
  })
  const cookie = answer.headers.get('set-cookie')?.split(';')[0]
  if (!answer.ok || cookie === undefined) throw new Error(`the operator was not signed in: ${await answer.text()}`)
  return cookie
}

async function copyOfFile(context: ProofContext, url: string) {
  const folder = mkdtempSync(join(context.folder, 'attacked-'))
  cpSync(dirname(url.slice('sqlite:'.length)), folder, { recursive: true })
  return {
    url: `sqlite:${join(folder, 'intray.db')}`,
    drop: async () => rmSync(folder, { recursive: true, force: true }),
  }
}

async function copyOfDatabase(templateUrl: string) {
  const nameOf = (url: string) => new URL(url).pathname.slice(1)
  const server = templateUrl.replace(/\/[^/]*$/, '/postgres')
  const url = await createDatabase(server, `TEMPLATE ${nameOf(templateUrl)}`)
  const drop = () =>
    withClient(server, async (client) => {
      await client.query(`DROP DATABASE ${nameOf(url)} WITH (FORCE)`)
    })
  return { url, drop }
}
