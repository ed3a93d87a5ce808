// Hooks and endpoints to look at: what vendors sent to a hook, and what a receiver answered.

import assert from 'node:assert/strict'
import type { TestContext } from 'node:test'
import type { Page } from 'playwright-core'
import type { ShownEndpoint } from '../../../kits/typescript/src/schema.ts'
import { intray } from '../../support/process.ts'
import { type Receiver, startReceiver, status } from '../../support/receiver.ts'
import { DEADLINE_MS, until } from '../../support/until.ts'
import { type Desk, signInByLink } from './desk.ts'

/** Of a desk whose endpoints may be on this machine. */
export const LOOPBACK_ALLOWED = { INTRAY_PUSH_ALLOW: '127.0.0.0/8' }

/** A call of the console's API with the session of a page. */
export function ask<Answer>(page: Page, path: string, body?: object, method = 'POST'): Promise<Answer> {
  return page.evaluate(
    async ([address, text, verb]) => {
      const headers = { 'Intray-Tenant': '1/1', 'Content-Type': 'application/json' }
      const answer = await fetch(address!, text === null ? { headers } : { method: verb!, headers, body: text! })
      if (!answer.ok) throw new Error(`${address}: ${answer.status} ${await answer.text()}`)
      return answer.json()
    },
    [path, body === undefined ? null : JSON.stringify(body), method] as const,
  ) as Promise<Answer>
}

export interface SeededHook {
  readonly keyId: string
  readonly url: string
  readonly secret: string
}

export async function createHook(desk: Desk, command: object): Promise<SeededHook> {
  const page = await desk.open('overview')
  const { hook } = await ask<{ hook: { key_id: string; url: string; secret: string | null } }>(
    page,
    '/v1/console/hooks',
    command,
  )
  await page.context().close()
  // The address that is shown may be a public one.
  return { keyId: hook.key_id, url: desk.url + new URL(hook.url).pathname, secret: hook.secret ?? '' }
}

export function telegram({ url, secret }: SeededHook, update: number, text: unknown, name = 'Ada'): Promise<Response> {
  const from = { id: 1815, first_name: name, last_name: 'Lovelace' }
  const message = { message_id: update, from, chat: { ...from, type: 'private' }, date: 1_800_000_000, text }
  return fetch(url, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json', 'X-Telegram-Bot-Api-Secret-Token': secret },
    body: JSON.stringify({ update_id: update, message }),
  })
}

/** A hook to which messages came in, one with a secret that is wrong, and one of a strange shape. */
export async function seedHook(desk: Desk): Promise<SeededHook> {
  const hook = await createHook(desk, { recipe: 'telegram', name: 'support bot' })
  await telegram(hook, 100_001, 'Is it still there?')
  await telegram(hook, 100_002, 'And how much is it?')
  await telegram({ ...hook, secret: 'of somebody else' }, 100_003, 'Is it still there?')
  await telegram(hook, 100_004, ['a', 'list'])
  return hook
}

/** A subscription `crm` whose endpoint took some events and refused one. */
export async function seedEndpoint(desk: Desk, t: Pick<TestContext, 'after'>): Promise<Receiver> {
  const receiver = await startReceiver(t as TestContext)
  receiver.respond = (one, res, socket) =>
    one.attempt === 1 && one.n % 6 === 5
      ? status(500, {}, '{"error":"the CRM is busy"}')(one, res, socket)
      : status(200, {}, '{"taken":true,"ticket":12345678901234567890}')(one, res, socket)
  const page = await desk.open('overview')
  await ask(page, '/v1/inbox/subscriptions', { name: 'crm', from: 'beginning' })
  await ask(page, '/v1/inbox/subscriptions/crm/endpoint', {
    url: receiver.url,
    headers: [
      { name: 'X-Team', value: 'sales', secret: false },
      { name: 'Authorization', value: 'Bearer of-the-crm' },
    ],
  })
  await until('events were pushed, and one failed', async () => {
    const { endpoint } = await ask<ShownEndpoint>(page, '/v1/inbox/subscriptions/crm/endpoint')
    return endpoint.recent.failed > 0 && endpoint.recent.count > 8
  })
  await page.context().close()
  return receiver
}

/** A page of an operator who may only look. */
export async function openAsViewer(desk: Desk, path: string): Promise<Page> {
  const { code, stdout, stderr } = await intray(['operator', 'add', 'vera', '--role', 'viewer'], desk.env)
  assert.equal(code, 0, stderr)
  const [link = ''] = /http:\S+#link=\S+/.exec(stdout.toString()) ?? []
  const context = await desk.browser.newContext({ viewport: { width: 1280, height: 800 } })
  context.setDefaultTimeout(DEADLINE_MS)
  const page = await context.newPage()
  await signInByLink(page, link)
  await page.goto(`${desk.url}/console/1/1/${path}`)
  await page.locator('main h1').waitFor()
  return page
}
