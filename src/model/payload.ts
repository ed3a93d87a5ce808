// Checks that a payload still matches its digest, and that it can stand inside of a JSON document.

import { hash } from 'node:crypto'
import { scanMessage } from './message-scan.ts'

/** About 1 µs for each KiB. */
export function isIntact(payload: Uint8Array, sha256: Uint8Array): boolean {
  return hash('sha256', payload, 'buffer').equals(sha256)
}

/** The `unindexed` reason of an event whose payload does not match its digest. */
export const DAMAGED = 'the payload no longer matches its digest'

/** The `unindexed` reason of an event whose payload cannot be read. */
export const UNREADABLE = 'the payload cannot be read: a page of the database is damaged'

/** Between two turns: 64 KiB take less than 1 ms to scan. */
const STEP_BYTES = 64 * 1024
const BOM = Buffer.from('\uFEFF')

/** Lets others work. */
type Turn = () => Promise<void>

/** Whether the bytes are JSON as they stand: without a BOM, and in valid UTF-8. */
export async function isEmbeddable(payload: Uint8Array, turn: Turn): Promise<boolean> {
  return !startsWithBom(payload) && (await isJson(payload, turn))
}

/**
 * The field or fields of a document that hold the payload: the JSON without its BOM, which has no place inside of a document, or
 * base64 of bytes that are not JSON, such as a form that came in through a hook.
 */
export async function payloadFields(payload: Uint8Array, turn: Turn): Promise<Uint8Array> {
  if (!(await isJson(payload, turn))) {
    const bytes = Buffer.from(payload.buffer, payload.byteOffset, payload.byteLength)
    return Buffer.from(`"payload":null,"payload_base64":"${bytes.toString('base64')}"`)
  }
  const json = startsWithBom(payload) ? payload.subarray(BOM.length) : payload
  return Buffer.concat([Buffer.from('"payload":'), json])
}

async function isJson(payload: Uint8Array, turn: Turn): Promise<boolean> {
  const scan = scanMessage(payload)
  for (;;) {
    scan.run(STEP_BYTES)
    if (scan.isDone) return scan.problem === null
    await turn()
  }
}

function startsWithBom(payload: Uint8Array): boolean {
  return BOM.equals(payload.subarray(0, BOM.length))
}
