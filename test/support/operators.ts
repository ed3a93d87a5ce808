// What the tests of the console share: operators who are signed in, and calls with their sessions.

import assert from 'node:assert/strict'
import { createSignInLink } from '../../src/auth/sessions.ts'
import type { OperatorRole } from '../../src/model/operator.ts'
import type { Tenant } from '../../src/model/principal.ts'
import { randomBase62 } from '../../src/runtime/id.ts'
import type { TestApp } from './app.ts'
import type { TestAnswer } from './client.ts'

export const TENANT_HEADER = 'Intray-Tenant'

export interface OperatorOptions {
  readonly role?: OperatorRole
  /** Null: all of them. */
  readonly tenants?: readonly Tenant[] | null
  readonly name?: string
}

export interface TestOperator {
  readonly name: string
  readonly cookie: string
  /** The headers of a call for a tenant: by default the one that `app.post` sends for. */
  headers(tenant?: string): Record<string, string>
  get(path: string, tenant?: string): Promise<TestAnswer>
  /** Sends a JSON body, or none. */
  post(path: string, body?: object | string, tenant?: string): Promise<TestAnswer>
}

export async function createOperator(app: TestApp, options: OperatorOptions = {}): Promise<string> {
  const { role = 'admin', tenants = null } = options
  const id = randomBase62(10)
  const name = options.name ?? `op-${id.toLowerCase()}`
  await app.store.operators.create({ id, name, role, tenants, password: null, createdAt: Date.now() })
  return name
}

/** The code of a link that signs an operator in once. */
export async function signInCode(app: TestApp, name: string, now = Date.now()): Promise<string> {
  const operator = await app.store.operators.findByName(name)
  return createSignInLink(app.store.operators, operator!, now)
}

export function signIn(app: TestApp, body: object, headers: Record<string, string> = {}): Promise<TestAnswer> {
  return app.send({
    method: 'POST',
    path: '/v1/console/session',
    headers: { 'Content-Type': 'application/json', ...headers },
    body: JSON.stringify(body),
  })
}

/** The pair that a browser would send back. */
export function cookieOf({ headers, text }: TestAnswer): string {
  const [cookie] = headers['set-cookie'] ?? []
  assert.ok(cookie, `no cookie came with ${text}`)
  return cookie.split(';')[0]!
}

export async function operatorOf(app: TestApp, options: OperatorOptions = {}): Promise<TestOperator> {
  const name = await createOperator(app, options)
  const answer = await signIn(app, { link: await signInCode(app, name) })
  assert.equal(answer.status, 200, answer.text)
  return operatorWith(app, name, cookieOf(answer))
}

export function operatorWith(app: TestApp, name: string, cookie: string): TestOperator {
  const headers = (tenant = '7/42') => ({
    Cookie: cookie,
    [TENANT_HEADER]: tenant,
    Origin: `http://127.0.0.1:${app.port}`,
  })
  return {
    name,
    cookie,
    headers,
    get: (path, tenant) => app.send({ path, headers: headers(tenant) }),
    post: (path, body, tenant) =>
      app.send({
        method: 'POST',
        path,
        headers: { ...headers(tenant), ...(body === undefined ? {} : { 'Content-Type': 'application/json' }) },
        ...(body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
      }),
  }
}
