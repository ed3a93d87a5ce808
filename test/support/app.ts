// The whole service in this process, on a database of its own, listening on a free port.

import type { TestContext } from 'node:test'
import { createLogger } from '../../src/runtime/log.ts'
import { type App, startApp } from '../../src/app.ts'
import { mintToken } from '../../src/auth/token.ts'
import { loadConfig, type SettingName, variableName } from '../../src/config.ts'
import type { TokenRecord } from '../../src/model/token.ts'
import type { Clock } from '../../src/runtime/clock.ts'
import type { Store } from '../../src/store/contract/store.ts'
import { openStore } from '../../src/store/open.ts'
import { type SendOptions, send, type TestAnswer } from './client.ts'
import type { Driver } from './drivers.ts'

/** Made for tests. */
export const SECRETS_KEY = Buffer.alloc(32, 7).toString('base64')

export interface TokenOptions {
  readonly accountId?: number
  readonly companyId?: number
  readonly scope?: string
  readonly expiresAt?: number | null
  readonly rateLimit?: TokenRecord['rateLimit']
}

export interface TestApp {
  readonly app: App
  readonly store: Store
  readonly url: string
  readonly port: number
  readonly databaseUrl: string
  /** A token with scope cf of account 7, company 42. */
  readonly token: string
  /** Every log record so far. */
  readonly log: readonly Record<string, unknown>[]
  createToken(options?: TokenOptions): Promise<string>
  /** Sends a request and holds the answer against the contract. */
  send(options: SendOptions): Promise<TestAnswer>
  /** Posts a body as JSON with the default token. */
  post(body: string | Uint8Array | object, headers?: Record<string, string>): Promise<TestAnswer>
  /** Resolves when the index covers everything stored before the call. */
  indexed(): Promise<void>
}

export interface TestAppOptions {
  readonly settings?: Partial<Record<SettingName, string>>
  readonly clock?: Clock
  /** Puts something between the service and its store, for tests of faults. */
  readonly wrapStore?: (store: Store) => Store
}

export async function startTestApp(t: TestContext, driver: Driver, options: TestAppOptions = {}): Promise<TestApp> {
  const databaseUrl = await driver.readyDatabase()
  // A slow machine is neither an overload nor a slow client: tests of these say so.
  const environment: Record<string, string> = {
    INTRAY_PORT: '0',
    INTRAY_DATABASE_URL: databaseUrl,
    INTRAY_SECRETS_KEY: SECRETS_KEY,
    INTRAY_QUEUE_MAX_WAIT: '10m',
    INTRAY_HEADERS_TIMEOUT: '1h',
    INTRAY_REQUEST_TIMEOUT: '1h',
  }
  for (const [name, value] of Object.entries(options.settings ?? {}))
    environment[variableName(name as SettingName)] = value
  const config = loadConfig(environment)
  const opened = await openStore(config.databaseUrl, { role: 'server' })
  const store = options.wrapStore?.(opened) ?? opened
  const log: Record<string, unknown>[] = []
  const logger = createLogger('info', (line) => log.push(JSON.parse(line) as Record<string, unknown>))
  const app = await startApp({ config, store, logger, ...(options.clock ? { clock: options.clock } : {}) })
  t.after(() => app.stop())

  const createToken = async (options: TokenOptions = {}) => {
    const { accountId = 7, companyId = 42, scope = 'cf', expiresAt = null, rateLimit = null } = options
    const { keyId, token, hash } = mintToken()
    const createdAt = Date.now()
    await store.tokens.create({
      keyId,
      hash,
      accountId,
      companyId,
      scope,
      label: '',
      expiresAt,
      createdAt,
      rotatedFrom: null,
      rateLimit,
    })
    return token
  }
  const token = await createToken()
  const port = Number(new URL(app.address).port)
  const sendChecked = (request: SendOptions) => send(port, request)
  return {
    app,
    store,
    url: app.address,
    port,
    databaseUrl,
    token,
    log,
    createToken,
    send: sendChecked,
    post: (body, headers = {}) =>
      sendChecked({
        method: 'POST',
        path: '/v1/inbox/events',
        headers: { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json', ...headers },
        body: typeof body === 'string' || body instanceof Uint8Array ? body : JSON.stringify(body),
      }),
    indexed: () => untilIndexed(store),
  }
}

async function untilIndexed(store: Store): Promise<void> {
  for (;;) {
    const { lag, searchLag, clearing } = await store.index.progress()
    if (lag === 0 && searchLag === 0 && !clearing) return
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
}
