// The columns of an event in a table, with control characters escaped.

import type { EventKind } from '../../model/event.ts'
import { cut, printable } from '../output.ts'

interface Shown {
  readonly kind: EventKind
  readonly revises: number | null
  readonly channelRef: string | null
  readonly contactName: string | null
  readonly contactEmail: string | null
  readonly snippet: string | null
}

/** Channel, contact and text; the first two are cut to `width`. */
export function eventCells(event: Shown, width = Number.POSITIVE_INFINITY): [string, string, string] {
  const { kind, revises, snippet } = event
  const text = kind === 'revision' ? `(revises ${revises}) ${snippet ?? ''}` : (snippet ?? '-')
  const short = (cell: string | null) => cut(printable(cell ?? '-'), width)
  return [short(event.channelRef), short(event.contactName ?? event.contactEmail), printable(text)]
}
