// What processors do, to excess: claims, releases, acks, long polls, streams, subscriptions.

import { type AttackClient, type Attack, pause } from '../attack.ts'

const CLAIMS = '/v1/inbox/claims'
const STREAM_MS = 500

const post = (client: AttackClient, path: string, body: object) => client.request({ path, body: JSON.stringify(body) })

export const longPolls: Attack = {
  name: 'long-polls',
  about: 'claims that wait for events of a conversation that has none',
  by: 'processor',
  connections: 500,
  prepare: (client) => (n) => {
    const request = post(client, CLAIMS, { limit: 200, wait_s: 1 + (n % 3), filter: { channel_ref: `none-${n}` } })
    return client.repeat(() => request)
  },
}

export const streamsUnread: Attack = {
  name: 'streams-unread',
  about: 'streams from the first event on, never read',
  by: 'processor',
  connections: 300,
  prepare: (client) => {
    const request = client.request({ path: '/v1/inbox/stream?after=0' })
    return () => client.flood(request, 1, 2000)
  },
}

export const claimAndRelease: Attack = {
  name: 'claim-release',
  about: 'claims of 200 events that are released at once',
  by: 'processor',
  connections: 16,
  prepare: (client) => async () => {
    const claim = post(client, CLAIMS, { limit: 200, lease_s: 600, ordered: false })
    let wire = await client.open()
    for (;;) {
      if (!wire.isOpen) wire = await client.open()
      const { body } = await client.ask(wire, claim, true)
      const pattern = /"id":(\d+)[^{}]*?"lease_id":"([^"]+)"/g
      const events = Array.from((body ?? '').matchAll(pattern), ([, id, lease]) => ({
        id: Number(id),
        lease_id: lease,
      }))
      if (events.length > 0) await client.ask(wire, post(client, `${CLAIMS}/release`, { events, delay_s: 0 }))
    }
  },
}

export const unknownLeases: Attack = {
  name: 'unknown-leases',
  about: 'acks of 1,000 leases that do not exist',
  by: 'processor',
  connections: 32,
  prepare: (client) => {
    const events = Array.from({ length: 1000 }, (_, n) => ({ id: n + 1, lease_id: `lease-${n}` }))
    const request = post(client, `${CLAIMS}/ack`, { events })
    return () => client.repeat(() => request)
  },
}

export const subscriptions: Attack = {
  name: 'subscriptions',
  about: 'subscriptions to all events, created and deleted',
  by: 'processor',
  connections: 16,
  prepare: (client) => (n) => {
    const create = post(client, '/v1/inbox/subscriptions', { name: `s${n}` })
    const remove = client.request({ method: 'DELETE', path: `/v1/inbox/subscriptions/s${n}` })
    const claim = post(client, CLAIMS, { subscription: `s${n}`, limit: 200 })
    const inTurn = [create, claim, remove]
    return client.repeat((k) => inTurn[k % inTurn.length]!)
  },
}

export const unknownFields: Attack = {
  name: 'unknown-fields',
  about: 'claims of 250 kB with 20,000 unknown fields, acks with 8,000',
  by: 'processor',
  connections: 16,
  prepare: (client) => {
    const fields = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, n) => [`k${n}`, 1]))
    const claim = post(client, CLAIMS, fields(20_000))
    const ack = post(client, `${CLAIMS}/ack`, fields(8000))
    return (connection) => client.repeat(() => (connection % 2 === 0 ? claim : ack))
  },
}

export const requeues: Attack = {
  name: 'requeues',
  about: 'requeues of dead events, where none is dead',
  by: 'processor',
  connections: 32,
  prepare: (client) => {
    const request = post(client, '/v1/inbox/requeue', { limit: 1000 })
    return () => client.repeat(() => request)
  },
}

export const streamsRead: Attack = {
  name: 'streams-read',
  about: 'streams of all events, read for half a second, and again',
  by: 'processor',
  connections: 64,
  prepare: (client) => {
    const request = client.request({ path: '/v1/inbox/stream?after=0' })
    return async () => {
      for (;;) {
        const wire = await client.open()
        client.sent += 1
        await wire.push(request)
        await Promise.race([wire.closed, pause(STREAM_MS)])
        wire.close()
      }
    }
  },
}

export const tokenChurn: Attack = {
  name: 'token-churn',
  about: 'tokens created without end',
  by: 'operator',
  connections: 16,
  prepare: (client) => () => client.repeat((n) => post(client, '/v1/console/tokens', { scope: 'cf', label: `t${n}` })),
}
