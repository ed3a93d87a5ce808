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

/** What a refusal may name: rows of messages, and their references. */
export class Names {
  readonly ids: number[] = []
  readonly references = new Set<string>()

  static of(row: NamedRow): Names {
    const names = new Names()
    names.add(row)
    return names
  }

  add({ id, sourceRef, idempotencyKey }: NamedRow): void {
    this.ids.push(id)
    for (const reference of [sourceRef, idempotencyKey]) if (reference !== null) this.references.add(reference)
  }
}

export interface NamedRow {
  readonly id: number
  readonly sourceRef: string | null
  readonly idempotencyKey: string | null
}

/** The refusals of a tenant, each of them read once: what one erasure shares between its pages. */
export class NamedRefusals {
  readonly #store: Pick<RefusalStore, 'list'>
  readonly #tenant: Tenant
  readonly #byReference = new Map<string, number[]>()
  readonly #byEvent = new Map<number, number>()
  readonly #taken = new Set<number>()
  #newest = 0
  #isRead = false

  constructor(store: Pick<RefusalStore, 'list'>, tenant: Tenant) {
    this.#store = store
    this.#tenant = tenant
  }

  get isRead(): boolean {
    return this.#isRead
  }

  /** Reads those that came since the last call. Returns the ids of those that match. */
  async readNew(matches: (refusal: StoredRefusal) => boolean): Promise<number[]> {
    const known = this.#newest
    const found: number[] = []
    for await (const refusal of refusalsOf(this.#store, this.#tenant, known)) {
      this.#newest = Math.max(this.#newest, refusal.id)
      this.#add(refusal)
      if (matches(refusal)) found.push(refusal.id)
    }
    this.#isRead = true
    return found
  }

  of({ ids, references }: Names): number[] {
    const accepted = ids.flatMap((id) => this.#byEvent.get(id) ?? [])
    return [...accepted, ...Array.from(references).flatMap((reference) => this.#byReference.get(reference) ?? [])]
  }

  /** How many of these are given for the first time. */
  take(ids: Iterable<number>): number {
    const before = this.#taken.size
    for (const id of ids) this.#taken.add(id)
    return this.#taken.size - before
  }

  #add(refusal: StoredRefusal): void {
    if (refusal.acceptedAs !== null) this.#byEvent.set(refusal.acceptedAs, refusal.id)
    for (const reference of new Set(referencesIn(refusal))) {
      const ids = this.#byReference.get(reference)
      if (ids) ids.push(refusal.id)
      else this.#byReference.set(reference, [refusal.id])
    }
  }
}

/** Newest first, down to the one after `after`. */
async function* refusalsOf(
  store: Pick<RefusalStore, 'list'>,
  tenant: Tenant,
  after: number,
): AsyncGenerator<StoredRefusal> {
  for (let before = Number.MAX_SAFE_INTEGER; ; ) {
    const page = await store.list(tenant, before, PAGE)
    yield* page.filter(({ id }) => id > after)
    if (page.length < PAGE || page.at(-1)!.id <= after) return
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
