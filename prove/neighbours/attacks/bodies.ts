// Bodies that cost much to read: many keys, deep nesting, single bytes, refusals, gzip.

import { gzipSync } from 'node:zlib'
import type { AttackClient, Attack } from '../attack.ts'
import { ref } from './refs.ts'

const EVENTS = '/v1/inbox/events'
const MEGABYTE = 1_000_000

const post = (client: AttackClient, body: string | Uint8Array, headers: readonly string[] = []) =>
  client.request({ path: EVENTS, body, headers })

export const nestedGzip: Attack = {
  name: 'nested-gzip',
  about: 'about 1 kB of gzip that unpacks to 1 MB of nested arrays',
  by: 'sender',
  connections: 16,
  isControl: true,
  prepare: (client) => {
    const depth = MEGABYTE / 2
    const body = gzipSync(`{"meta":${'['.repeat(depth)}${']'.repeat(depth)}}`)
    const request = post(client, body, ['Content-Encoding: gzip'])
    return () => client.repeat(() => request)
  },
}

export const manyKeys: Attack = {
  name: 'many-keys',
  about: 'bodies with 60,000 keys',
  by: 'sender',
  connections: 16,
  isControl: true,
  prepare: (client) => {
    const keys = Array.from({ length: 60_000 }, (_, n) => `"k${n}":${n}`)
    const request = post(client, `{${keys.join()}}`)
    return () => client.repeat(() => request)
  },
}

export const halfSent: Attack = {
  name: 'half-sent',
  about: '300 bodies of 1 MB of which the last bytes never come',
  by: 'sender',
  connections: 300,
  isControl: true,
  hasLargeVictim: true,
  prepare: (client) => {
    const half = post(client, `{"text":"${'x'.repeat(MEGABYTE)}"}`).subarray(0, -1000)
    return async () => {
      for (;;) {
        const wire = await client.open()
        client.sent += 1
        await wire.push(half)
        await wire.closed
        client.cut += 1
      }
    }
  },
}

export const refusedBodies: Attack = {
  name: 'refused-bodies',
  about: 'bodies of 1 MB whose last byte makes them no JSON',
  by: 'sender',
  connections: 16,
  prepare: (client) => {
    const request = post(client, `{"text":"${'ключ '.repeat(MEGABYTE / 10)}"]`)
    return () => client.repeat(() => request)
  },
}

export const escapedBodies: Attack = {
  name: 'escaped-bodies',
  about: 'bodies of 1 MB in which every character and every key is escaped',
  by: 'sender',
  connections: 16,
  prepare: (client) => {
    const keys = Array.from({ length: 20_000 }, (_, n) => `"\\u0073ource\\u005fref":"\\u00e9\\ud83d\\ude00${n}"`)
    const request = post(client, `{${keys.join()}}`)
    return () => client.repeat(() => request)
  },
}

export const byteChunks: Attack = {
  name: 'byte-chunks',
  about: 'chunked bodies of 100,000 chunks of one byte',
  by: 'sender',
  connections: 16,
  prepare: (client) => {
    const head = client.request({
      method: 'POST',
      path: EVENTS,
      headers: ['Content-Type: application/json', 'Transfer-Encoding: chunked'],
    })
    const body = Array.from(`{"text":"${'x'.repeat(100_000)}"}`, (byte) => `1\r\n${byte}\r\n`).join('')
    const request = Buffer.concat([head, Buffer.from(`${body}0\r\n\r\n`)])
    return () => client.repeat(() => request)
  },
}

export const gzipBombs: Attack = {
  name: 'gzip-bombs',
  about: 'gzip of 100 kB that unpacks to 100 MB',
  by: 'sender',
  connections: 32,
  prepare: (client) => {
    const request = post(client, gzipSync(Buffer.alloc(100 * MEGABYTE, ' ')), ['Content-Encoding: gzip'])
    return () => client.repeat(() => request)
  },
}

export const distinctWords: Attack = {
  name: 'distinct-words',
  about: 'messages of 16 kB with 2,040 distinct words',
  by: 'sender',
  leadSeconds: 3,
  connections: 16,
  isControl: true,
  prepare: (client) => () =>
    client.repeat(() => {
      const words = Array.from({ length: 2040 }, () => ref(7))
      return post(client, JSON.stringify({ source_ref: ref(12), message: { type: 'text', text: words.join(' ') } }))
    }),
}

export const revisions: Attack = {
  name: 'revisions',
  about: 'pipelined messages of one source_ref, each with other bytes',
  by: 'sender',
  connections: 16,
  prepare: (client) => () =>
    client.pipeline(() => post(client, JSON.stringify({ source_ref: 'one', channel_ref: 'one', text: ref(10) })), 16),
}

export const firehose: Attack = {
  name: 'firehose',
  about: 'small messages as fast as they are answered, pipelined',
  by: 'sender',
  connections: 64,
  prepare: (client) => () =>
    client.pipeline(() => post(client, JSON.stringify({ source_ref: ref(12), message: { text: ref(6) } })), 8),
}
