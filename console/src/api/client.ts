// Typed API client: one call for every operation of api/openapi.yaml, with the operator's session and the chosen tenant. The
// only file of the console that talks to the server.

import type { Operations } from '../../../kits/typescript/src/schema.ts'

export type OperationName = keyof Operations
export type Answer<Name extends OperationName> = Operations[Name]['answer']

/** An account and a company. */
export interface Tenant {
  readonly accountId: number
  readonly companyId: number
}

export interface CallOptions<Name extends OperationName> {
  readonly tenant?: Tenant
  /** Values for the places of the path, such as `{id}`. */
  readonly path?: Readonly<Record<string, string | number>>
  readonly query?: Operations[Name]['query']
  readonly body?: Operations[Name]['body']
  /** Instead of `body`: text that is sent unchanged. */
  readonly bodyText?: string
  readonly signal?: AbortSignal | undefined
}

export class ApiError extends Error {
  readonly status: number
  readonly code: string
  readonly requestId: string | null

  constructor(status: number, code: string, message: string, requestId: string | null) {
    super(message)
    this.status = status
    this.code = code
    this.requestId = requestId
  }
}

export async function call<Name extends OperationName>(
  name: Name,
  options: CallOptions<Name> = {},
): Promise<Answer<Name>> {
  const answer = await request(name, options)
  return (await answer.json()) as Answer<Name>
}

/** The body as text, not parsed, so that numbers keep their digits. A BOM stays visible. */
export async function callText<Name extends OperationName>(
  name: Name,
  options: CallOptions<Name> = {},
): Promise<string> {
  const answer = await request(name, options)
  return new TextDecoder('utf-8', { ignoreBOM: true }).decode(await answer.arrayBuffer())
}

/** The response; throws ApiError unless it is a 2xx. */
export async function request<Name extends OperationName>(
  name: Name,
  { tenant, path = {}, query = {}, body, bodyText, signal }: CallOptions<Name>,
  moreHeaders: Readonly<Record<string, string>> = {},
): Promise<Response> {
  const [method = 'GET', template = ''] = name.split(' ')
  const text = bodyText ?? (body === undefined ? undefined : JSON.stringify(body))
  const answer = await fetch(addressOf(template, path, query), {
    method,
    headers: {
      ...(tenant ? { 'Intray-Tenant': tenantKey(tenant) } : {}),
      ...(text === undefined ? {} : { 'Content-Type': 'application/json' }),
      ...moreHeaders,
    },
    ...(text === undefined ? {} : { body: text }),
    ...(signal ? { signal } : {}),
    credentials: 'same-origin',
    cache: 'no-store',
  })
  if (!answer.ok) throw await errorOf(answer)
  return answer
}

/** As in the header and in URLs: 7/42. */
export function tenantKey({ accountId, companyId }: Tenant): string {
  return `${accountId}/${companyId}`
}

export function addressOf(
  template: string,
  path: Readonly<Record<string, string | number>>,
  query: Readonly<Record<string, unknown>>,
): string {
  const filled = template.replace(/\{(\w+)\}/g, (_place, name: string) => encodeURIComponent(String(path[name])))
  const search = new URLSearchParams()
  for (const [name, value] of Object.entries(query)) {
    if (value !== undefined && value !== null) search.set(name, String(value))
  }
  return search.size === 0 ? filled : `${filled}?${search}`
}

async function errorOf(answer: Response): Promise<ApiError> {
  const text = await answer.text().catch(() => '')
  try {
    const { error, message, request_id, fields } = JSON.parse(text) as {
      readonly error?: string
      readonly message?: string
      readonly request_id?: string
      readonly fields?: readonly { readonly path: string; readonly message: string }[]
    }
    // The message is that of the first field.
    const details = (fields ?? []).slice(1).map((field) => ` ${field.path}: ${field.message}`)
    return new ApiError(
      answer.status,
      error ?? 'unknown',
      `${message ?? challengeText(answer)}${details.join('')}`,
      request_id ?? answer.headers.get('X-Request-Id'),
    )
  } catch {
    return new ApiError(answer.status, 'unknown', `The server answered ${answer.status}.`, null)
  }
}

/** For a 403, whose message stands in WWW-Authenticate. */
function challengeText(answer: Response): string {
  const challenge = answer.headers.get('WWW-Authenticate') ?? ''
  return /error_description="([^"]*)"/.exec(challenge)?.[1] ?? `The server answered ${answer.status}.`
}
