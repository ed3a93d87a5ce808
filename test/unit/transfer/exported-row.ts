// Rows of an export, made up.

import { hash } from 'node:crypto'
import type { StoredEvent } from '../../../src/model/event.ts'
import type { ExportedRow } from '../../../src/transfer/export-row.ts'
import { item } from '../../store/rows.ts'

/** Without a payload: erased or damaged, as the fields say. */
export function exportedRow(id: number, payload: Buffer | null, fields: Partial<StoredEvent> = {}): ExportedRow {
  const {
    mintedKey: _,
    payload: bytes,
    ...meta
  } = item({ payload: payload ?? Buffer.from('gone'), sourceRef: `r:${id}` })
  const sha256 = hash('sha256', bytes, 'buffer')
  const event = { ...meta, id, kind: 'event', revises: null, size: bytes.length, sha256, erasedAt: null } as const
  return { event: { ...event, ...fields }, payload }
}

export async function* each<T>(all: Iterable<T>): AsyncGenerator<T> {
  yield* all
}
