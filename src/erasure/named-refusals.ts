// Refused requests that an erasure takes along: those that became an erased event, and those whose body names its reference or
// the e-mail address. A refused body may be anything, so what is no JSON is searched as text.

import { CONTACT_EMAIL, SOURCE_REF, scanWhole } from '../model/message-scan.ts'
import type { Tenant } from '../model/principal.ts'
import type { StoredRefusal } from '../model/refusal.ts'
import { foldEmail } from '../model/text-search.ts'
import type { RefusalStore } from '../store/contract/refusals.ts'

/** Bodies of 64 KiB are scanned on the main thread, in one turn each page. */
const PAGE = 5
/** A source_ref in a form, a query, a list, broken JSON or JSON inside of a string. */
const REFERENCE = /source_ref["'\]\s\\]*[:=]["'\s\\]*([^"'&,}\s\\]+)/g
/** Of a list that was sent as one message. */
const MAX_REFERENCES = 100
/** Only what looks like an address is searched in whole texts: `a` would be in all of them. */
const ADDRESS = /[^\s@]@[^\s@]/

export class NamedRefusals {
  readonly #byReference = new Map<string, number[]>()
  readonly #byEvent = new Map<number, number>()

  /** The refusals that came from a message. */
  of({ id, sourceRef, idempotencyKey }: Named): number[] {
    const accepted = this.#byEvent.get(id)
    return [
      ...(accepted === undefined ? [] : [accepted]),
      ...(sourceRef === null ? [] : (this.#byReference.get(sourceRef) ?? [])),
      ...(idempotencyKey === null ? [] : (this.#byReference.get(idempotencyKey) ?? [])),
    ]
  }

  add(refusal: StoredRefusal): void {
    if (refusal.acceptedAs !== null) this.#byEvent.set(refusal.acceptedAs, refusal.id)
    for (const reference of new Set(referencesIn(refusal))) {
      const ids = this.#byReference.get(reference)
      if (ids) ids.push(refusal.id)
      else this.#byReference.set(reference, [refusal.id])
    }
  }
}

interface Named {
  readonly id: number
  readonly sourceRef: string | null
  readonly idempotencyKey: string | null
}

export async function* refusalsOf(store: Pick<RefusalStore, 'list'>, tenant: Tenant): AsyncGenerator<StoredRefusal> {
  for (let before = Number.MAX_SAFE_INTEGER; ; ) {
    const page = await store.list(tenant, before, PAGE)
    yield* page
    if (page.length < PAGE) return
    before = page.at(-1)!.id
  }
}

/** The address as the contact's, however it is escaped; or anywhere in the text. */
export function namesEmail({ body }: Pick<StoredRefusal, 'body'>, email: string): boolean {
  const folded = foldEmail(email)
  const scan = scanWhole(body)
  if (scan.typeOf(CONTACT_EMAIL) === 'string' && foldEmail(scan.stringOf(CONTACT_EMAIL)) === folded) return true
  if (!ADDRESS.test(folded)) return false
  const text = Buffer.from(body).toString('utf8').toLowerCase()
  return text.includes(folded) || text.includes(encodeURIComponent(folded).toLowerCase())
}

function referencesIn({ body, headers }: Pick<StoredRefusal, 'body' | 'headers'>): string[] {
  const scan = scanWhole(body)
  const found = Object.entries(headers).flatMap(([name, value]) =>
    name.toLowerCase() === 'idempotency-key' ? [value] : [],
  )
  if (scan.typeOf(SOURCE_REF) === 'string') found.push(scan.stringOf(SOURCE_REF))
  else {
    const matches = Buffer.from(body).toString('utf8').matchAll(REFERENCE).take(MAX_REFERENCES)
    for (const [, text] of matches) found.push(text!, decoded(text!))
  }
  return found
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text.replaceAll('+', ' '))
  } catch {
    return text
  }
}
