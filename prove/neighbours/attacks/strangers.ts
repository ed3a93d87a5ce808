// What somebody without any token can send.

import { randomBytes } from 'node:crypto'
import type { Attack, AttackClient } from '../attack.ts'
import { bearer, type Wire } from '../wire.ts'
import { ref } from './refs.ts'

const HOLD_MS = 2000
const AT_ONCE = 2000
/** By each of 200: together more than the service takes. */
const HELD = 55
const OPENED_AT_ONCE = 5

export const docsUnread: Attack = {
  name: 'docs-unread',
  about: 'GET /docs 2,000 times on a connection, never read',
  by: 'stranger',
  connections: 10,
  isControl: true,
  prepare: (client) => {
    const request = client.request({ path: '/docs' })
    return () => client.flood(request, AT_ONCE, HOLD_MS)
  },
}

export const openapiUnread: Attack = {
  name: 'openapi-unread',
  about: 'GET /openapi.json and /openapi.yaml 2,000 times on a connection, never read',
  by: 'stranger',
  connections: 20,
  prepare: (client) => (n) =>
    client.flood(client.request({ path: `/openapi.${n % 2 ? 'json' : 'yaml'}` }), AT_ONCE, HOLD_MS),
}

export const consoleUnread: Attack = {
  name: 'console-unread',
  about: 'GET /console and a file below it 2,000 times on a connection, never read',
  by: 'stranger',
  connections: 20,
  prepare: (client) => (n) =>
    client.flood(client.request({ path: n % 2 ? '/console' : '/console/inbox' }), AT_ONCE, HOLD_MS),
}

export const unknownPaths: Attack = {
  name: 'unknown-paths',
  about: 'addresses that do not exist, pipelined',
  by: 'stranger',
  connections: 32,
  prepare: (client) => () => client.pipeline(() => client.request({ path: `/v1/${ref(8)}` }), 32),
}

export const unknownTokens: Attack = {
  name: 'unknown-tokens',
  about: 'tokens of the right form that do not exist, pipelined',
  by: 'stranger',
  connections: 32,
  prepare: (client) => {
    const { senderToken } = client.target
    // The form is the service's own; only the secret part differs.
    const next = () => bearer(senderToken.slice(0, -20) + randomBytes(10).toString('hex'))
    return () => client.pipeline(() => client.request({ path: '/v1/inbox/events', body: '{}', headers: [next()] }), 16)
  },
}

export const signIns: Attack = {
  name: 'sign-ins',
  about: 'sign-ins with names and passwords of all kinds',
  by: 'stranger',
  connections: 64,
  prepare: (client) => () =>
    client.repeat((n) => {
      const body = JSON.stringify({ name: n % 2 ? 'mallory' : ref(8), password: ref(12) })
      return client.request({ path: '/v1/console/session', body })
    }),
}

export const headerFlood: Attack = {
  name: 'header-flood',
  about: 'requests with 15 kB of small headers, pipelined',
  by: 'stranger',
  connections: 32,
  prepare: (client) => pipelineHeaders(client, 1000, 4),
}

export const allowedHeaders: Attack = {
  name: 'allowed-headers',
  about: 'requests with as many headers and bytes as are allowed, pipelined',
  by: 'stranger',
  connections: 32,
  prepare: (client) => pipelineHeaders(client, 95, 155),
}

function pipelineHeaders(client: AttackClient, count: number, length: number): () => Promise<void> {
  const headers = Array.from({ length: count }, (_, n) => `x-${n}: ${ref(length)}`)
  const request = client.request({ path: '/livez', headers })
  return () => client.pipeline(() => request, 8)
}

export const newConnections: Attack = {
  name: 'new-connections',
  about: 'connections that are opened, used once and dropped',
  by: 'stranger',
  connections: 64,
  prepare: (client) => async () => {
    const request = client.request({ path: '/readyz' })
    for (;;) {
      const wire = await client.open()
      const { status } = await client.ask(wire, request)
      if (status === 0) client.cut += 1
      wire.close()
    }
  },
}

export const unknownSessions: Attack = {
  name: 'unknown-sessions',
  about: 'session cookies that do not exist, pipelined',
  by: 'stranger',
  connections: 32,
  prepare: (client) => () =>
    client.pipeline(() => {
      const cookie = `Cookie: intray_session=${randomBytes(24).toString('base64url')}`
      return client.request({ path: '/v1/console/overview', headers: [cookie, 'Intray-Tenant: 7/42'] })
    }, 16),
}

export const idleConnections: Attack = {
  name: 'idle-connections',
  about: 'more connections from one address than the service takes, all idle',
  by: 'stranger',
  connections: 200,
  leadSeconds: 5,
  prepare: (client) => async () => {
    let held: Wire[] = []
    for (;;) {
      const missing = Math.min(HELD - held.length, OPENED_AT_ONCE)
      if (missing === 0) await Promise.race(held.map(({ closed }) => closed))
      held.push(...(await Promise.all(Array.from({ length: missing }, () => client.open()))))
      client.sent += missing
      held = held.filter(({ isOpen }) => isOpen)
    }
  },
}
