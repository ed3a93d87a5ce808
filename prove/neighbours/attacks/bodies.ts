// Bodies that cost much to read: many keys, deep nesting, single bytes, refusals, gzip.

import { gzipSync } from 'node:zlib'
import type { Arms, Attack } from '../attack.ts'
import { ref } from './refs.ts'

const EVENTS = '/v1/inbox/events'
const MEGABYTE = 1_000_000

const post = (arms: Arms, body: string | Uint8Array, headers: readonly string[] = []) =>
  arms.request({ path: EVENTS, body, headers })

export const nestedGzip: Attack = {
  name: 'nested-gzip',
  about: 'about 1 kB of gzip that unpacks to 1 MB of nested arrays',
  by: 'sender',
  connections: 16,
  isControl: true,
  prepare: (arms) => {
    const depth = MEGABYTE / 2
    const body = gzipSync(`{"meta":${'['.repeat(depth)}${']'.repeat(depth)}}`)
    const request = post(arms, body, ['Content-Encoding: gzip'])
    return () => arms.repeat(() => request)
  },
}

export const manyKeys: Attack = {
  name: 'many-keys',
  about: 'bodies with 60,000 keys',
  by: 'sender',
  connections: 16,
  isControl: true,
  prepare: (arms) => {
    const keys = Array.from({ length: 60_000 }, (_, n) => `"k${n}":${n}`)
    const request = post(arms, `{${keys.join()}}`)
    return () => arms.repeat(() => request)
  },
}

export const halfSent: Attack = {
  name: 'half-sent',
  about: '300 bodies of 1 MB of which the last bytes never come',
  by: 'sender',
  connections: 300,
  isControl: true,
  hasLargeVictim: true,
  prepare: (arms) => {
    const half = post(arms, `{"text":"${'x'.repeat(MEGABYTE)}"}`).subarray(0, -1000)
    return async () => {
      while (!arms.isOver) {
        const wire = await arms.open()
        arms.sent += 1
        await wire.push(half)
        await wire.closed
        arms.cut += 1
      }
    }
  },
}

export const refusedBodies: Attack = {
  name: 'refused-bodies',
  about: 'bodies of 1 MB whose last byte makes them no JSON',
  by: 'sender',
  connections: 16,
  prepare: (arms) => {
    const request = post(arms, `{"text":"${'ключ '.repeat(MEGABYTE / 10)}"]`)
    return () => arms.repeat(() => request)
  },
}

export const escapedBodies: Attack = {
  name: 'escaped-bodies',
  about: 'bodies of 1 MB in which every character and every key is escaped',
  by: 'sender',
  connections: 16,
  prepare: (arms) => {
    const keys = Array.from({ length: 20_000 }, (_, n) => `"\\u0073ource\\u005fref":"\\u00e9\\ud83d\\ude00${n}"`)
    const request = post(arms, `{${keys.join()}}`)
    return () => arms.repeat(() => request)
  },
}

export const byteChunks: Attack = {
  name: 'byte-chunks',
  about: 'chunked bodies of 100,000 chunks of one byte',
  by: 'sender',
  connections: 16,
  prepare: (arms) => {
    const head = arms.request({
      method: 'POST',
      path: EVENTS,
      headers: ['Content-Type: application/json', 'Transfer-Encoding: chunked'],
    })
    const body = Array.from(`{"text":"${'x'.repeat(100_000)}"}`, (byte) => `1\r\n${byte}\r\n`).join('')
    const request = Buffer.concat([head, Buffer.from(`${body}0\r\n\r\n`)])
    return () => arms.repeat(() => request)
  },
}

export const gzipBombs: Attack = {
  name: 'gzip-bombs',
  about: 'gzip of 100 kB that unpacks to 100 MB',
  by: 'sender',
  connections: 32,
  prepare: (arms) => {
    const request = post(arms, gzipSync(Buffer.alloc(100 * MEGABYTE, ' ')), ['Content-Encoding: gzip'])
    return () => arms.repeat(() => request)
  },
}

export const distinctWords: Attack = {
  name: 'distinct-words',
  about: 'messages of 16 kB with 2,040 distinct words',
  by: 'sender',
  leadSeconds: 3,
  connections: 16,
  isControl: true,
  prepare: (arms) => () =>
    arms.repeat(() => {
      const words = Array.from({ length: 2040 }, () => ref(7))
      return post(arms, JSON.stringify({ source_ref: ref(12), message: { type: 'text', text: words.join(' ') } }))
    }),
}

export const revisions: Attack = {
  name: 'revisions',
  about: 'pipelined messages of one source_ref, each with other bytes',
  by: 'sender',
  connections: 16,
  prepare: (arms) => () =>
    arms.pipeline(() => post(arms, JSON.stringify({ source_ref: 'one', channel_ref: 'one', text: ref(10) })), 16),
}

export const firehose: Attack = {
  name: 'firehose',
  about: 'small messages as fast as they are answered, pipelined',
  by: 'sender',
  connections: 64,
  prepare: (arms) => () =>
    arms.pipeline(() => post(arms, JSON.stringify({ source_ref: ref(12), message: { text: ref(6) } })), 8),
}
