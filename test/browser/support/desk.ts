// A server as its users start it, on an empty database, and a browser in front of it. Everything that is known of the server
// is what it printed.

import assert from 'node:assert/strict'
import { join } from 'node:path'
import { after, before, type TestContext } from 'node:test'
import { type Browser, type BrowserContext, type BrowserContextOptions, chromium, type Page } from 'playwright-core'
import { findChromium } from '../../support/chromium.ts'
import { type ServerProcess, startServer } from '../../support/process.ts'
import { tempFolder } from '../../support/temp.ts'
import { DEADLINE_MS, until } from '../../support/until.ts'

export interface Desk {
  readonly server: ServerProcess
  readonly browser: Browser
  readonly url: string
  readonly env: Record<string, string>
  /** As printed. */
  readonly link: string
  readonly token: string
  readonly curlLine: string
  /** A context of its own, with the session of the first sign-in. */
  newContext(options?: BrowserContextOptions): Promise<BrowserContext>
  /** A page in a context of its own, at an address under /console/1/1/, signed in. */
  open(path: string, options?: BrowserContextOptions): Promise<Page>
  post(body: string | object, headers?: Record<string, string>): Promise<Response>
}

/** Called in the body of a describe block: one server and one browser for all its cases. There once the first case runs. */
export function sharedDesk(
  prepare: (desk: Desk, t: Pick<TestContext, 'after'>) => Promise<unknown> = async () => {},
  settings: Readonly<Record<string, string>> = {},
): { readonly desk: Desk } {
  const shared = {} as { desk: Desk }
  const cleanUps: (() => unknown)[] = []
  const context = { after: (cleanUp: () => unknown) => cleanUps.push(cleanUp) } as unknown as TestContext
  before(async () => {
    shared.desk = await openDesk(context, settings)
    await prepare(shared.desk, context)
  })
  after(async () => {
    for (const cleanUp of cleanUps.toReversed()) await cleanUp()
  })
  return shared
}

export async function openDesk(
  t: Pick<TestContext, 'after'>,
  settings: Readonly<Record<string, string>> = {},
): Promise<Desk> {
  const env = { ...settings, INTRAY_DATABASE_URL: `sqlite:${join(tempFolder('console'), 'intray.db')}` }
  const server = await startServer(t as TestContext, env)
  const printed = (pattern: RegExp) => until(`${pattern} is printed`, () => pattern.exec(server.stdout())?.[1])
  const link = await printed(/(http:\S+\/console#link=\S+)/)
  const curlLine = await printed(/^ *(curl .*)$/m)
  const [token] = /itr_[0-9A-Za-z]{10}_[0-9A-Za-z]{36}/.exec(curlLine)!
  const browser = await launchBrowser(t)
  let session: BrowserContextOptions['storageState']
  const newContext = async (options: BrowserContextOptions = {}) => {
    const context = await browser.newContext({
      viewport: { width: 1280, height: 800 },
      ...(session ? { storageState: session } : {}),
      ...options,
    })
    context.setDefaultTimeout(DEADLINE_MS)
    return context
  }
  return {
    server,
    browser,
    url: server.url,
    env,
    link,
    token,
    curlLine,
    newContext,
    async open(path, options) {
      if (!session) {
        const first = await newContext()
        await signInByLink(await first.newPage(), link)
        session = await first.storageState()
        await first.close()
      }
      const context = await newContext(options)
      const page = await context.newPage()
      await page.goto(`${server.url}/console/1/1/${path}`)
      await page.locator('main h1').waitFor()
      return page
    },
    post: (body, headers = {}) =>
      fetch(`${server.url}/v1/inbox/events`, {
        method: 'POST',
        headers: { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json', ...headers },
        body: typeof body === 'string' ? body : JSON.stringify(body),
      }),
  }
}

export async function launchBrowser(t: Pick<TestContext, 'after'>): Promise<Browser> {
  const browser = await chromium.launch({
    executablePath: findChromium()!,
    timeout: DEADLINE_MS,
    // Letters without coloured edges make smaller pictures. Chromium's own sandbox does not run as root.
    args: ['--disable-lcd-text', '--disable-gpu', ...(process.getuid?.() === 0 ? ['--no-sandbox'] : [])],
  })
  t.after(() => browser.close())
  return browser
}

export async function signInByLink(page: Page, link: string): Promise<void> {
  await page.goto(link)
  await page.locator('main h1', { hasText: 'Overview' }).waitFor()
  assert.ok(!page.url().includes('link'), 'the code is not in the address')
}

/** The list is followed: from here on nothing that comes in is missed. */
export async function untilLive(page: Page): Promise<void> {
  await page.locator('.live-mark[data-live=live]').waitFor()
}
