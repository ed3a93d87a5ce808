// Parses and validates the JSON commands of processors, and names every wrong field. Unknown fields are errors: a misspelt
// option must not silently become its default.

import type { ErasureSelector } from '../model/erasure.ts'
import type { FieldProblem, Problem } from '../model/errors.ts'
import { CLAIM_LIMITS, DEFAULT_SUBSCRIPTION, RETRY_LIMITS } from '../model/processing.ts'
import type { LeaseItem, ReleaseItem } from '../model/processing-plan.ts'
import { isoMoment } from '../runtime/parameter.ts'
import { redactBeginning } from '../runtime/redact.ts'
import type { DeadFilter } from '../store/contract/processing.ts'
import type { ClaimCommand, SubscriptionCommand } from './claims.ts'

/** The first problems of a command are named; more would make a long answer of a long mistake. */
const MAX_PROBLEMS = 20
const MAX_SHOWN_NAME = 64

type Body = Readonly<Record<string, unknown>>
export type Read<T> = { readonly command: T } | { readonly problem: Problem }

const SUBSCRIPTION_NAME = /^[a-z0-9][a-z0-9_.-]{0,63}$/
const MAX_REF_UNITS = 512
const MAX_LEASE_ID = 100

export function isSubscriptionName(name: string): boolean {
  return SUBSCRIPTION_NAME.test(name)
}

export function readClaim(body: Body): Read<ClaimCommand> {
  const fields = new Fields(body, ['limit', 'lease_s', 'wait_s', 'ordered', 'subscription', 'filter'])
  const filter = fields.object('filter', ['channel_ref'])
  return fields.done({
    limit: fields.whole('limit', CLAIM_LIMITS.events) ?? CLAIM_LIMITS.events.fallback,
    leaseMs: 1000 * (fields.whole('lease_s', CLAIM_LIMITS.leaseS) ?? CLAIM_LIMITS.leaseS.fallback),
    waitMs: 1000 * (fields.whole('wait_s', CLAIM_LIMITS.waitS) ?? CLAIM_LIMITS.waitS.fallback),
    ordered: fields.boolean('ordered') ?? true,
    subscription: fields.subscription(),
    channelRef: filter?.text('channel_ref', MAX_REF_UNITS) ?? null,
  })
}

export interface LeaseCommand<I extends LeaseItem> {
  readonly subscription: string
  readonly items: readonly I[]
  /** One event, not a list: a lost lease then fails the whole call. */
  readonly isSingle: boolean
}

export function readAck(body: Body): Read<LeaseCommand<LeaseItem>> {
  const { fields, items, isSingle } = readItems(body, ['subscription'])
  return fields.done({ subscription: fields.subscription(), items: items.map(({ item }) => item), isSingle })
}

export function readExtend(body: Body): Read<LeaseCommand<LeaseItem> & { readonly leaseMs: number }> {
  const { fields, items, isSingle } = readItems(body, ['subscription', 'lease_s'])
  const leaseMs = 1000 * (fields.whole('lease_s', CLAIM_LIMITS.leaseS) ?? CLAIM_LIMITS.leaseS.fallback)
  return fields.done({ subscription: fields.subscription(), items: items.map(({ item }) => item), isSingle, leaseMs })
}

/** `delay_s`, `error` and `dead` beside the list apply to all its events; with an event, to that one. */
export function readRelease(body: Body): Read<LeaseCommand<ReleaseItem>> {
  const own = ['delay_s', 'error', 'dead']
  const { fields, items, isSingle } = readItems(body, ['subscription', ...own], own)
  const optionsOf = (from: Fields) => ({
    delayS: from.whole('delay_s', CLAIM_LIMITS.delayS),
    error: from.text('error', CLAIM_LIMITS.errorUnits),
    dead: from.boolean('dead'),
  })
  const common = optionsOf(fields)
  const released = items.map(({ item, fields: of }): ReleaseItem => {
    const given = isSingle ? common : optionsOf(of)
    const delayS = given.delayS ?? common.delayS
    const error = given.error ?? common.error
    const isDead = given.dead ?? common.dead ?? false
    if (isDead && error === null) of.required('error', null, 'must be given with `dead`: it says why')
    return { ...item, delayMs: delayS === null ? null : 1000 * delayS, error, isDead }
  })
  return fields.done({ subscription: fields.subscription(), items: released, isSingle })
}

export interface RequeueCommand {
  readonly subscription: string
  readonly filter: DeadFilter
  readonly limit: number
  readonly dryRun: boolean
}

export function readRequeue(body: Body): Read<RequeueCommand> {
  const fields = new Fields(body, ['subscription', 'filter', 'limit', 'dry_run'])
  const filter = fields.object('filter', ['channel_ref', 'dead_after', 'dead_before'])
  return fields.done({
    subscription: fields.subscription(),
    filter: {
      ids: null,
      channelRef: filter?.text('channel_ref', MAX_REF_UNITS) ?? null,
      deadAfter: filter?.moment('dead_after') ?? null,
      deadBefore: filter?.moment('dead_before') ?? null,
    },
    limit: fields.whole('limit', CLAIM_LIMITS.requeue) ?? CLAIM_LIMITS.requeue.fallback,
    dryRun: fields.boolean('dry_run') ?? false,
  })
}

export function readRequeueOne(body: Body): Read<{ readonly subscription: string }> {
  const fields = new Fields(body, ['subscription'])
  return fields.done({ subscription: fields.subscription() })
}

export interface EraseCommand {
  readonly selector: ErasureSelector
  readonly dryRun: boolean
  readonly cursor: number | null
}

const SELECTORS = ['event', 'conversation', 'email', 'source_ref'] as const

export function readErasure(body: Body): Read<EraseCommand> {
  const fields = new Fields(body, [...SELECTORS, 'dry_run', 'cursor'])
  const [event, conversation] = [fields.whole('event', IDS), fields.whole('conversation', IDS)]
  const [email, sourceRef] = [fields.text('email', MAX_REF_UNITS), fields.text('source_ref', MAX_REF_UNITS)]
  const given = [event, conversation, email, sourceRef].filter((value) => value !== null)
  if (given.length === 0) fields.required('event', null)
  if (given.length > 1) {
    fields.addProblem('event', 'invalid_value', `must be the only one of ${SELECTORS.join(', ')}`)
  }
  const selector: ErasureSelector =
    event !== null
      ? { event }
      : conversation !== null
        ? { conversation }
        : email !== null
          ? { email }
          : { sourceRef: sourceRef ?? '' }
  return fields.done({ selector, dryRun: fields.boolean('dry_run') ?? false, cursor: fields.whole('cursor', IDS) })
}

export function readSubscription(body: Body): Read<SubscriptionCommand> {
  const fields = new Fields(body, ['name', 'from', 'max_attempts', 'first_delay_s', 'max_delay_s'])
  const name = fields.text('name', 64)
  if (name === null) fields.addProblem('name', 'missing', 'must be given')
  else if (!isSubscriptionName(name)) fields.addProblem('name', 'invalid_name', NAME_FORM)
  const from = fields.text('from', 20) ?? 'now'
  if (from !== 'now' && from !== 'beginning') fields.addProblem('from', 'invalid_value', 'must be "now" or "beginning"')
  const delayMs = (field: string): number | null => {
    const delayS = fields.whole(field, RETRY_LIMITS.delayS)
    return delayS === null ? null : 1000 * delayS
  }
  return fields.done({
    name: name ?? '',
    from: from === 'beginning' ? 'beginning' : 'now',
    maxAttempts: fields.whole('max_attempts', RETRY_LIMITS.attempts),
    firstDelayMs: delayMs('first_delay_s'),
    maxDelayMs: delayMs('max_delay_s'),
  })
}

const NAME_FORM = 'must have 1 to 64 of the characters a–z, 0–9, "_", "." and "-", and begin with a letter or digit'

/** One `{id, lease_id}`, or a list of them under `events`. */
function readItems(body: Body, common: readonly string[], own: readonly string[] = []) {
  const isSingle = !Object.hasOwn(body, 'events')
  const fields = new Fields(body, [...common, ...(isSingle ? ['id', 'lease_id'] : ['events'])])
  const found = isSingle ? [fields] : fields.list('events', ['id', 'lease_id', ...own])
  const items = found.map((of) => ({
    fields: of,
    item: {
      id: of.required('id', of.whole('id', IDS)),
      leaseId: of.required('lease_id', of.text('lease_id', MAX_LEASE_ID)),
    },
  }))
  return { fields, items: items as { fields: Fields; item: LeaseItem }[], isSingle }
}

export const IDS = { min: 1, max: Number.MAX_SAFE_INTEGER }

interface Range {
  readonly min: number
  readonly max: number
}

/** The fields of one object; collects their problems. `null` counts as absent. */
export class Fields {
  readonly #body: Body
  readonly #at: string
  readonly #problems: FieldProblem[]

  constructor(body: Body, known: readonly string[], at = '', problems: FieldProblem[] = []) {
    this.#body = body
    this.#at = at
    this.#problems = problems
    for (const name of Object.keys(body)) {
      if (this.#problems.length === MAX_PROBLEMS) break
      if (!known.includes(name)) this.addProblem(name, 'unknown_field', `is not known. Use only ${known.join(', ')}`)
    }
  }

  addProblem(name: string, code: string, message: string): null {
    if (this.#problems.length === MAX_PROBLEMS) return null
    const path = `${this.#at}/${shownName(name).replaceAll('~', '~0').replaceAll('/', '~1')}`
    // The name of an unknown field is the sender's text, so only the path shows it.
    const subject = code === 'unknown_field' ? 'This field' : `\`${name}\``
    this.#problems.push({ path, code, message: `${subject} ${message}.` })
    return null
  }

  required<T>(name: string, value: T | null, message = 'must be given'): T | null {
    if (value === null && !this.#problems.some(({ path }) => path === `${this.#at}/${name}`)) {
      this.addProblem(name, 'missing', message)
    }
    return value
  }

  whole(name: string, { min, max }: Range): number | null {
    const value = this.#value(name)
    if (value === null) return null
    if (typeof value === 'number' && Number.isInteger(value) && value >= min && value <= max) return value
    return this.addProblem(name, 'out_of_range', `must be a whole number from ${min} to ${max}`)
  }

  boolean(name: string): boolean | null {
    const value = this.#value(name)
    if (value === null || typeof value === 'boolean') return value
    return this.addProblem(name, 'not_a_boolean', 'must be true or false')
  }

  has(name: string): boolean {
    return this.#value(name) !== null
  }

  text(name: string, maxUnits: number): string | null {
    const value = this.#value(name)
    if (value === null) return null
    if (typeof value !== 'string') return this.addProblem(name, 'not_a_string', 'must be a string')
    if (value === '' || value.length > maxUnits)
      return this.addProblem(name, 'too_long', `must have 1 to ${maxUnits} characters`)
    if (value.includes('\0') || !value.isWellFormed())
      return this.addProblem(name, 'invalid_character', 'must not contain U+0000 or a lone surrogate')
    return value
  }

  moment(name: string): number | null {
    const value = this.text(name, 40)
    if (value === null) return null
    try {
      return isoMoment(value)
    } catch (error) {
      return this.addProblem(name, 'not_a_time', (error as Error).message)
    }
  }

  subscription(): string {
    const name = this.text('subscription', 64) ?? DEFAULT_SUBSCRIPTION
    if (!isSubscriptionName(name)) this.addProblem('subscription', 'invalid_name', NAME_FORM)
    return name
  }

  object(name: string, known: readonly string[]): Fields | null {
    const value = this.#value(name)
    if (value === null) return null
    if (isObject(value)) return new Fields(value, known, `${this.#at}/${name}`, this.#problems)
    return this.addProblem(name, 'not_an_object', 'must be an object')
  }

  list(name: string, known: readonly string[], { min, max }: Range = CLAIM_LIMITS.items): Fields[] {
    const value = this.#value(name)
    if (!Array.isArray(value) || value.length < min || value.length > max) {
      this.addProblem(name, 'not_a_list', `must be a list of ${min} to ${max} objects`)
      return []
    }
    return value.flatMap((one: unknown, n) => {
      if (isObject(one)) return [new Fields(one, known, `${this.#at}/${name}/${n}`, this.#problems)]
      this.addProblem(name, 'not_a_list', 'must hold objects only')
      return []
    })
  }

  done<T>(command: T): Read<T> {
    if (this.#problems.length === 0) return { command }
    return { problem: { code: 'invalid_payload', fields: this.#problems } }
  }

  #value(name: string): unknown {
    return Object.hasOwn(this.#body, name) ? (this.#body[name] ?? null) : null
  }
}

/** Redacted, because the sender may have put a token in the wrong place. */
function shownName(name: string): string {
  return redactBeginning(name, MAX_SHOWN_NAME)
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
