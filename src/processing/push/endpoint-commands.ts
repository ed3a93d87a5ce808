// Parses and validates the JSON commands about endpoints.

import { BODY_FORMS, type BodyForm, ENDPOINT_LIMITS, type HeaderField } from '../../model/endpoint.ts'
import { CLAIM_LIMITS } from '../../model/processing.ts'
import type { SettledRange } from '../../store/contract/processing.ts'
import { Fields, IDS, type Read } from '../commands.ts'
import type { EndpointChange } from './endpoints.ts'
import { headerProblem } from './header-field.ts'
import { keyOfSecret, SECRET_FORM } from './signature.ts'
import { MAX_URL_UNITS, parseTargetUrl } from './target-url.ts'

const MAX_SECRET_UNITS = 200
const seconds = ({ min, max }: { readonly min: number; readonly max: number }) => ({ min: min / 1000, max: max / 1000 })

type Body = Readonly<Record<string, unknown>>

export function readEndpoint(body: Body): Read<EndpointChange> {
  const fields = new Fields(body, ['url', 'body', 'timeout_s', 'concurrency', 'headers', 'secret'])
  const url = fields.text('url', MAX_URL_UNITS)
  const parsed = url === null ? null : parseTargetUrl(url)
  if (parsed && 'problem' in parsed) fields.addProblem('url', 'invalid_value', parsed.problem)
  const form = fields.text('body', 20)
  if (form !== null && !BODY_FORMS.includes(form as BodyForm)) {
    fields.addProblem('body', 'invalid_value', 'must be "event" or "raw"')
  }
  const timeoutS = fields.whole('timeout_s', seconds(ENDPOINT_LIMITS.timeoutMs))
  return fields.done({
    url: url ?? undefined,
    body: (form as BodyForm | null) ?? undefined,
    timeoutMs: timeoutS === null ? undefined : 1000 * timeoutS,
    concurrency: fields.whole('concurrency', ENDPOINT_LIMITS.concurrency) ?? undefined,
    headers: fields.has('headers') ? readHeaders(fields) : undefined,
    secret: readSecret(fields) ?? undefined,
  })
}

function readHeaders(fields: Fields): HeaderField[] {
  const given = fields.list('headers', ['name', 'value', 'secret'], { min: 0, max: ENDPOINT_LIMITS.headers })
  return given.flatMap((one) => {
    const name = one.required('name', one.text('name', ENDPOINT_LIMITS.headerNameUnits))
    const value = one.required('value', one.text('value', ENDPOINT_LIMITS.headerValueUnits))
    const isSecret = one.boolean('secret') ?? true
    if (name === null || value === null) return []
    const problem = headerProblem({ name, value })
    if (problem !== null) one.addProblem('name', 'invalid_value', problem)
    return [{ name, value, isSecret }]
  })
}

function readSecret(fields: Fields): string | null {
  const secret = fields.text('secret', MAX_SECRET_UNITS)
  if (secret !== null && keyOfSecret(secret) === null) fields.addProblem('secret', 'invalid_value', SECRET_FORM)
  return secret
}

export function readRotation(body: Body): Read<{ readonly overlapMs: number | null; readonly secret: string | null }> {
  const fields = new Fields(body, ['overlap_s', 'secret'])
  const overlapS = fields.whole('overlap_s', seconds(ENDPOINT_LIMITS.overlapMs))
  return fields.done({ overlapMs: overlapS === null ? null : 1000 * overlapS, secret: readSecret(fields) })
}

export interface ReplayCommand {
  readonly range: SettledRange
  readonly limit: number
  readonly dryRun: boolean
}

export function readReplay(body: Body): Read<ReplayCommand> {
  const fields = new Fields(body, ['from', 'to', 'limit', 'dry_run'])
  const fromId = fields.required('from', fields.whole('from', IDS)) ?? 1
  const toId = fields.required('to', fields.whole('to', IDS)) ?? 1
  if (fromId > toId) fields.addProblem('to', 'out_of_range', 'must not be below `from`')
  const limit = fields.whole('limit', CLAIM_LIMITS.requeue) ?? CLAIM_LIMITS.requeue.fallback
  return fields.done({ range: { fromId, toId }, limit, dryRun: fields.boolean('dry_run') ?? false })
}
