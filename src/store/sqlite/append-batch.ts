// A batch of appends: how it crosses to the writer thread, and how it lies in `arrivals` until it is filed. One buffer with all
// of it, which is transferred: the writer puts it into the database as it is, and takes nothing apart but what it must.
//
//   row   meta length 4 · payload length 4 · digest 16 · SHA-256 32 · meta (JSON) · payload
//
// The writer fills in digest and SHA-256: the thread that reads requests has more to do than the one that writes.
// This layout is on disk: it may only be changed together with a migration.

import {
  createMintedDigest,
  createSha256,
  createTextDigest,
  DIGEST_BYTES,
  identityText,
  SHA256_BYTES,
} from '../../model/dedupe.ts'
import type { EventMeta } from '../../model/event.ts'
import type { AppendItem } from '../contract/append.ts'

export interface AppendBatch {
  readonly bytes: Uint8Array<ArrayBuffer>
  /**
   * Who each row is, again and by itself, so that the writer need not read the metas: a JSON list of `Identity`. One text
   * crosses at a third of what a list of texts costs.
   */
  readonly identities: string
  /** Nothing in it can be refused by a column, and no payload is so large that it should not be written twice. */
  readonly isPlain: boolean
}

/** Whose a message is, and by what its sender knows it. */
export type Identity = [accountId: number, companyId: number, sourceRef: string | null, idempotencyKey: string | null]

/** One item of a batch, seen in place. */
export interface AppendRow extends EventMeta {
  /** Null where the item has none: such a row fails alone, as any other that a column does not take. */
  readonly mintedKey: string | null
  /** What makes this message one message. */
  readonly digest: Uint8Array
  readonly sha256: Uint8Array
  readonly payload: Uint8Array
  /** All of the row. */
  readonly bytes: Uint8Array
}

type Meta = [
  mintedKey: string | null,
  accountId: number,
  companyId: number,
  receivedAt: number,
  keyId: string,
  scope: string,
  route: string,
  sourceRef: string | null,
  channelRef: string | null,
  idempotencyKey: string | null,
  contentType: string,
  origin: AppendRow['origin'],
  requestId: string,
  traceparent: string | null,
  userAgent: string | null,
  remoteAddr: string | null,
]

const DIGEST_AT = 8
const SHA256_AT = DIGEST_AT + DIGEST_BYTES
const META_AT = SHA256_AT + SHA256_BYTES

/** What is larger goes to its own place at once, and is not written twice. */
const LARGEST_PLAIN = 64 * 1024

export function packBatch(items: readonly AppendItem[]): AppendBatch {
  const metas = items.map(metaText)
  let size = 0
  for (const [index, item] of items.entries()) {
    size += META_AT + Buffer.byteLength(metas[index]!) + item.payload.byteLength
  }
  const bytes = new Uint8Array(size)
  const buffer = Buffer.from(bytes.buffer)
  let at = 0
  for (const [index, { payload }] of items.entries()) {
    const metaLength = buffer.write(metas[index]!, at + META_AT)
    buffer.writeUInt32LE(metaLength, at)
    buffer.writeUInt32LE(payload.byteLength, at + 4)
    bytes.set(payload, at + META_AT + metaLength)
    at += META_AT + metaLength + payload.byteLength
  }
  return { bytes, identities: JSON.stringify(items.map(identityOf)), isPlain: items.every(isPlain) }
}

function identityOf({ accountId, companyId, sourceRef, idempotencyKey }: AppendItem): Identity {
  return [accountId, companyId, sourceRef, idempotencyKey]
}

export function* unpackBatch(bytes: Uint8Array): Generator<AppendRow> {
  const buffer = bufferOf(bytes)
  for (let at = 0; at < buffer.length; at = endOfRow(buffer, at)) yield rowFrom(buffer, at)
}

/** The digests alone, in order. */
export function digestsOf(bytes: Uint8Array): Uint8Array[] {
  const buffer = bufferOf(bytes)
  const digests: Uint8Array[] = []
  for (let at = 0; at < buffer.length; at = endOfRow(buffer, at)) {
    digests.push(buffer.subarray(at + DIGEST_AT, at + SHA256_AT))
  }
  return digests
}

/** Where the rows begin, and behind them all where the last ends. */
export function boundsOf(bytes: Uint8Array): number[] {
  const buffer = bufferOf(bytes)
  const bounds = [0]
  for (let at = 0; at < buffer.length; ) {
    at = endOfRow(buffer, at)
    bounds.push(at)
  }
  return bounds
}

/** The row at a place of a batch, counted from 0. */
export function rowOf(bytes: Uint8Array, place: number): AppendRow {
  return rowFrom(bufferOf(bytes), endOfRows(bytes, place))
}

/** Where so many rows end; -1 if there are not so many. */
export function endOfRows(bytes: Uint8Array, count: number): number {
  const buffer = bufferOf(bytes)
  let at = 0
  for (let passed = 0; passed < count; passed += 1) {
    if (at + META_AT > buffer.length) return -1
    at = endOfRow(buffer, at)
  }
  return at > buffer.length ? -1 : at
}

/** Fills in, in place, what is computed from the rest. Answers with who the rows are. */
export function createSeal(dedupeKey: Uint8Array): (batch: AppendBatch) => readonly Identity[] {
  const digestOf = createTextDigest(dedupeKey)
  const mintedDigest = createMintedDigest()
  const sha256Of = createSha256()
  const mintedAt = (buffer: Buffer, at: number): Uint8Array => {
    const { mintedKey } = rowFrom(buffer, at)
    return mintedKey === null ? NO_KEY : mintedDigest(mintedKey)
  }
  return (batch) => {
    const buffer = bufferOf(batch.bytes)
    const identities = JSON.parse(batch.identities) as Identity[]
    let at = 0
    for (const [accountId, companyId, sourceRef, idempotencyKey] of identities) {
      const end = endOfRow(buffer, at)
      const payloadAt = at + META_AT + buffer.readUInt32LE(at)
      const text = identityText({ accountId, companyId, sourceRef, idempotencyKey })
      buffer.set(text === null ? mintedAt(buffer, at) : digestOf(text), at + DIGEST_AT)
      buffer.set(sha256Of(buffer.subarray(payloadAt, end)), at + SHA256_AT)
      at = end
    }
    return identities
  }
}

const NO_KEY = new Uint8Array(DIGEST_BYTES)

function metaText(item: AppendItem): string {
  return JSON.stringify([
    item.mintedKey,
    item.accountId,
    item.companyId,
    item.receivedAt,
    item.keyId,
    item.scope,
    item.route,
    item.sourceRef,
    item.channelRef,
    item.idempotencyKey,
    item.contentType,
    item.origin,
    item.requestId,
    item.traceparent,
    item.userAgent,
    item.remoteAddr,
  ] satisfies Meta)
}

/** The columns take whatever has these types: what is in `arrivals` can be filed. */
function isPlain(item: AppendItem): boolean {
  return (
    item.payload.byteLength <= LARGEST_PLAIN &&
    Number.isSafeInteger(item.accountId) &&
    Number.isSafeInteger(item.companyId) &&
    Number.isSafeInteger(item.receivedAt) &&
    typeof item.mintedKey === 'string' &&
    typeof item.keyId === 'string' &&
    typeof item.scope === 'string' &&
    typeof item.route === 'string' &&
    typeof item.contentType === 'string' &&
    typeof item.origin === 'string' &&
    typeof item.requestId === 'string' &&
    isTextOrNull(item.sourceRef) &&
    isTextOrNull(item.channelRef) &&
    isTextOrNull(item.idempotencyKey) &&
    isTextOrNull(item.traceparent) &&
    isTextOrNull(item.userAgent) &&
    isTextOrNull(item.remoteAddr)
  )
}

const isTextOrNull = (value: unknown): boolean => value === null || typeof value === 'string'

function bufferOf({ buffer, byteOffset, byteLength }: Uint8Array): Buffer {
  return Buffer.from(buffer, byteOffset, byteLength)
}

function endOfRow(buffer: Buffer, at: number): number {
  return at + META_AT + buffer.readUInt32LE(at) + buffer.readUInt32LE(at + 4)
}

function rowFrom(buffer: Buffer, at: number): AppendRow {
  const end = endOfRow(buffer, at)
  const payloadAt = at + META_AT + buffer.readUInt32LE(at)
  const meta = JSON.parse(buffer.toString('utf8', at + META_AT, payloadAt)) as Meta
  return {
    mintedKey: meta[0],
    accountId: meta[1],
    companyId: meta[2],
    receivedAt: meta[3],
    keyId: meta[4],
    scope: meta[5],
    route: meta[6],
    sourceRef: meta[7],
    channelRef: meta[8],
    idempotencyKey: meta[9],
    contentType: meta[10],
    origin: meta[11],
    requestId: meta[12],
    traceparent: meta[13],
    userAgent: meta[14],
    remoteAddr: meta[15],
    digest: buffer.subarray(at + DIGEST_AT, at + SHA256_AT),
    sha256: buffer.subarray(at + SHA256_AT, at + META_AT),
    payload: buffer.subarray(payloadAt, end),
    bytes: buffer.subarray(at, end),
  }
}
