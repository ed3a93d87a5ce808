// A batch of appends: how it crosses to the writer thread, and how it lies in `arrivals` until it is filed. One buffer with all
// of it, which is transferred: the writer puts it into the database as it is, and takes nothing apart but what came before.
//
//   row   meta length 4 · payload length 4 · digest 16 · SHA-256 32 · meta (JSON) · payload
//
// The writer fills in digest and SHA-256: the thread that reads requests has more to do than the one that writes.
// This layout is on disk: it may only be changed together with a migration.

import { createIdentity, createMintedDigest, createSha256, DIGEST_BYTES, SHA256_BYTES } from '../../model/dedupe.ts'
import type { EventMeta } from '../../model/event.ts'
import type { AppendItem } from '../contract/append.ts'

export interface AppendBatch {
  readonly bytes: Uint8Array<ArrayBuffer>
  /**
   * Who each row is, again and by itself, so that the writer need not read the metas: a JSON list of `Identity`. One text
   * crosses at a third of what a list of texts costs.
   */
  readonly identities: string
  /** No payload is so large that it should not be written twice. */
  readonly isPlain: boolean
}

/** Whose a message is, and by what its sender knows it; or, if by nothing, the key that its node minted. */
export type Identity = [
  accountId: number,
  companyId: number,
  sourceRef: string | null,
  idempotencyKey: string | null,
  mintedKey: string | null,
]

/** One item of a batch, seen in place. */
export interface AppendRow extends EventMeta {
  readonly mintedKey: string
  /** What makes this message one message. */
  readonly digest: Uint8Array
  readonly sha256: Uint8Array
  readonly payload: Uint8Array
}

type Meta = [
  mintedKey: string,
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
  return {
    bytes,
    identities: JSON.stringify(items.map(identityOf)),
    isPlain: items.every(({ payload }) => payload.byteLength <= LARGEST_PLAIN),
  }
}

function identityOf({ accountId, companyId, sourceRef, idempotencyKey, mintedKey }: AppendItem): Identity {
  const minted = sourceRef === null && idempotencyKey === null ? mintedKey : null
  return [accountId, companyId, sourceRef, idempotencyKey, minted]
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
  return rowAt(bytes, endOfRows(bytes, place))
}

/** The row that begins there. */
export function rowAt(bytes: Uint8Array, at: number): AppendRow {
  return rowFrom(bufferOf(bytes), at)
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
  const digestOf = createIdentity(dedupeKey)
  const mintedDigest = createMintedDigest()
  const sha256Of = createSha256()
  return (batch) => {
    const buffer = bufferOf(batch.bytes)
    const identities = JSON.parse(batch.identities) as Identity[]
    let at = 0
    for (const [accountId, companyId, sourceRef, idempotencyKey, mintedKey] of identities) {
      const end = endOfRow(buffer, at)
      const payloadAt = at + META_AT + buffer.readUInt32LE(at)
      const minted = mintedKey === null ? NO_KEY : mintedDigest(mintedKey)
      buffer.set(digestOf({ accountId, companyId, sourceRef, idempotencyKey }, minted), at + DIGEST_AT)
      buffer.set(sha256Of(buffer.subarray(payloadAt, end)), at + SHA256_AT)
      at = end
    }
    return identities
  }
}

/** Not looked at where the sender knows the message by something. */
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
  }
}
