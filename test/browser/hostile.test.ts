// What strangers send is shown as text and runs nothing, under the Content-Security-Policy that is served.

import assert from 'node:assert/strict'
import { describe, test, type TestContext } from 'node:test'
import type { Page } from 'playwright-core'
import type { ShownEndpoint } from '../../kits/typescript/src/schema.ts'
import { missingChromium } from '../support/chromium.ts'
import { intrayJson } from '../support/command.ts'
import { startReceiver, status } from '../support/receiver.ts'
import { until } from '../support/until.ts'
import { ask, createHook, LOOPBACK_ALLOWED } from './support/connections.ts'
import { type Desk, sharedDesk, untilLive } from './support/desk.ts'

/** Each runs in a page that takes it for HTML, or for an address, and notes that it did. */
const CORPUS = [
  '<script>ran.push("script")</script>',
  '</script><script>ran.push("closed")</script>',
  '<img src=x onerror="ran.push(\'img\')">',
  '<svg onload="ran.push(\'svg\')"></svg>',
  '<svg><script>ran.push("svg script")</script></svg>',
  '<math><mtext></table><img src=x onerror="ran.push(\'math\')"></math>',
  '<iframe srcdoc="<script>parent.ran.push(1)</script>"></iframe>',
  '<details open ontoggle="ran.push(\'details\')">x</details>',
  '<input autofocus onfocus="ran.push(\'focus\')">',
  '<style>@import "//evil.example/x.css";</style><link rel=stylesheet href="//evil.example/y.css">',
  '<base href="//evil.example/">',
  '<form action="//evil.example"><button>Sign in again</button></form>',
  '"><script>ran.push("attribute")</script>',
  "'-ran.push('quote')-'",
  'javascript:ran.push("address")',
  '{{constructor.constructor("ran.push(1)")()}}',
  `\${ran.push("template")}`,
  'data:text/html,<script>ran.push(1)</script>',
  '\u202e\u2066evil\u2069 gnp.exe\u200b\ufeff\u00ad',
  '\ud83d\ude00\u200d\u0000-less, \u001b[31mred\u001b[0m',
] as const

interface Watched {
  ran: unknown[]
  reports: string[]
}

/** Notes in the page itself, from its first moment, what ran and what the policy stopped. */
function watch(): void {
  const watched: Watched = { ran: [], reports: [] }
  Object.assign(window, watched)
  window.alert = () => void watched.ran.push('alert')
  document.addEventListener('securitypolicyviolation', (event) => {
    watched.reports.push(`${event.violatedDirective} ${event.blockedURI} ${event.sample}`)
  })
}

const noted = (page: Page) =>
  page.evaluate(() => {
    const { ran, reports } = window as unknown as Watched
    return { ran, reports }
  })

async function sendCorpus(desk: Desk): Promise<void> {
  for (const [n, text] of CORPUS.entries()) {
    const safe = text.replaceAll('\u0000', '').replaceAll('\u001b', '')
    const body = {
      source_ref: `${n}:${safe}`,
      channel_ref: safe.slice(0, 400),
      contact: { name: text, email: text },
      message: { type: text.slice(0, 60), text },
      // All of them once more, as names and as values.
      meta: { ...Object.fromEntries(CORPUS.map((one) => [one, one])), page_url: text },
    }
    const header = /^[\x20-\x7e]*$/.test(text) ? { 'User-Agent': text, 'Idempotency-Key': `"${n}"` } : {}
    assert.equal((await desk.post(body, header)).status, 200)
    await desk.post({ ...body, meta: { again: text } }, header)
    await desk.post(`{"broken": ${JSON.stringify(text)},}`, header)
  }
}

/** A hook whose name, recipe and messages are hostile, as is one that it refused. */
async function sendCorpusToHook(desk: Desk): Promise<string> {
  const definition = JSON.stringify({
    title: CORPUS[2],
    bodies: ['json'],
    signature: { kind: 'none' },
    source_ref: ['{/id}'],
    channel_ref: ['{/from}'],
    index: { contact_name: ['{/from}'], contact_email: ['{/from}'], message_type: ['{/type}'], text: ['{/text}'] },
  })
  const hook = await createHook(desk, { recipe: 'custom', definition, name: CORPUS[0] })
  for (const [n, text] of CORPUS.slice(-9).entries()) {
    const body = JSON.stringify({ id: `${n}${text}`.replaceAll('\u0000', ''), from: text, type: text, text })
    await fetch(hook.url, { method: 'POST', headers: { 'Content-Type': 'application/json' }, body })
  }
  const refused = await fetch(hook.url, { method: 'POST', headers: { 'Content-Type': CORPUS[2] }, body: CORPUS[0] })
  assert.equal(refused.status, 415)
  return hook.keyId
}

/** An endpoint with hostile headers, which answers with the whole corpus, then that it is gone. */
async function pushToHostile(desk: Desk, t: Pick<TestContext, 'after'>): Promise<void> {
  const all = CORPUS.join('\n').slice(0, 1000)
  const receiver = await startReceiver(t as TestContext, status(500, {}, all))
  const page = await desk.open('overview')
  await ask(page, '/v1/inbox/subscriptions', { name: 'hostile', from: 'beginning' })
  await ask(page, '/v1/inbox/subscriptions/hostile/endpoint', {
    url: receiver.url,
    headers: [{ name: 'X-Name', value: CORPUS[2], secret: false }],
  })
  await until('it has answered', () => receiver.received.length > 0)
  receiver.respond = status(410, {}, CORPUS[2])
  await until('it is disabled', async () => {
    await desk.post({ message: { text: 'one more' } })
    const { endpoint } = await ask<ShownEndpoint>(page, '/v1/inbox/subscriptions/hostile/endpoint')
    return endpoint.state === 'disabled'
  })
  await page.context().close()
}

describe('hostile texts', { skip: missingChromium() }, () => {
  let hook = ''
  const shared = sharedDesk(async (desk, t) => {
    await sendCorpus(desk)
    hook = await sendCorpusToHook(desk)
    await pushToHostile(desk, t)
    const where = ['--account', '1', '--company', '1', '--scope', 'cf']
    await intrayJson(['token', 'create', ...where, '--label', CORPUS[2]], desk.env)
  }, LOOPBACK_ALLOWED)

  test('no script runs and the policy has nothing to stop, on any view', async () => {
    const page = await shared.desk.open('overview', { serviceWorkers: 'block' })
    const outside: string[] = []
    page.on('request', (request) => {
      if (!request.url().startsWith(shared.desk.url) && !request.url().startsWith('blob:')) outside.push(request.url())
    })
    await page.context().addInitScript(watch)
    const ids = await page.evaluate(async () => {
      const headers = { 'Intray-Tenant': '1/1' }
      const read = async (path: string) => (await fetch(path, { headers })).json()
      const { events } = (await read('/v1/inbox/events?limit=200&kind=event')) as { events: { id: number }[] }
      const { refusals } = (await read('/v1/inbox/refusals')) as { refusals: { id: number }[] }
      return { events: events.map(({ id }) => id), refusals: refusals.map(({ id }) => id) }
    })
    assert.ok(ids.events.length >= CORPUS.length && ids.refusals.length > 5)
    const [first = 0] = ids.events
    const places = [
      'overview',
      'events',
      ...ids.events.slice(0, 2).map((id) => `events/${id}`),
      `events/${first}?tab=raw`,
      `events/${first}?tab=revisions`,
      `events?q=${encodeURIComponent(CORPUS[0])}`,
      `events?channel_ref=${encodeURIComponent(CORPUS[2])}&tab=${encodeURIComponent(CORPUS[0])}`,
      'conversations',
      `conversations/${first}`,
      'refusals',
      ...ids.refusals.slice(0, 2).map((id) => `refusals/${id}`),
      'tokens',
      'hooks',
      `hooks/${hook}`,
      'queue',
      'endpoints',
      'endpoints/hostile',
      `events/${first}?tab=history`,
    ]
    for (const place of places) {
      await page.goto(`${shared.desk.url}/console/1/1/${place}`)
      await page.locator('main h1').waitFor()
      await page.locator('.loading').first().waitFor({ state: 'detached' })
      assert.deepEqual(await noted(page), { ran: [], reports: [] }, place)
      assert.equal(await page.locator('iframe, form[action], base, main style, main link').count(), 0, place)
      const strange = await page
        .locator('a[href]')
        .evaluateAll((links) =>
          links.map((link) => (link as HTMLAnchorElement).protocol).filter((protocol) => !/^https?:$/.test(protocol)),
        )
      assert.deepEqual(strange, [], place)
    }
    await page.goto(`${shared.desk.url}/console/1/1/hooks/${hook}`)
    await page.getByText('<img src=x onerror').first().waitFor()
    await page
      .getByLabel('Body, as the vendor sends it')
      .fill(JSON.stringify({ id: CORPUS[2], from: CORPUS[0], text: CORPUS[3] }))
    await page.getByRole('button', { name: 'Send a sample' }).click()
    await page.locator('.good-news').waitFor()
    assert.deepEqual(await noted(page), { ran: [], reports: [] }, 'a sample')
    await page.goto(`${shared.desk.url}/console/1/1/endpoints/hostile`)
    await page.getByRole('button', { name: 'Send a test' }).click()
    await page.locator('.line').getByText('<img src=x').waitFor()
    assert.deepEqual(await noted(page), { ran: [], reports: [] }, 'the answer of an endpoint')
    assert.deepEqual(outside, [], 'no other host was asked')
    await page.context().close()
  })

  test('the control: where they are taken for HTML, they run and are noticed', async () => {
    const page = await shared.desk.open('try')
    await page.context().addInitScript(watch)
    await page.route('**/control', (route) =>
      route.fulfill({ contentType: 'text/html', body: `<!doctype html><body>${CORPUS.join('\n')}</body>` }),
    )
    await page.goto(`${shared.desk.url}/control`)
    await until('scripts ran', async () => (await noted(page)).ran.length >= 4)
    await page.route('**/guarded', (route) =>
      route.fulfill({
        contentType: 'text/html',
        headers: { 'Content-Security-Policy': "script-src 'none'" },
        body: `<!doctype html><body>${CORPUS[0]}${CORPUS[2]}</body>`,
      }),
    )
    await page.goto(`${shared.desk.url}/guarded`)
    await until('the policy reports', async () => (await noted(page)).reports.length >= 2)
    assert.deepEqual((await noted(page)).ran, [])
    await page.context().close()
  })

  test('the policy in force stops what a mistake of ours would let in', async () => {
    const page = await shared.desk.open('try')
    const outcome = await page.evaluate(() => {
      try {
        document.body.insertAdjacentHTML('beforeend', '<img src=x onerror="document.title = 1">')
        return 'taken'
      } catch (error) {
        return (error as Error).name
      }
    })
    assert.equal(outcome, 'TypeError', 'text does not become HTML')
    await page.context().close()
  })

  test('marks that turn or hide text are shown by name, and turn nothing', async () => {
    const page = await shared.desk.open(`events?q=evil`)
    const row = page.getByRole('list', { name: 'Events' }).getByRole('link').first()
    await row.getByText('U+202E').first().waitFor()
    const text = (await row.textContent())!
    assert.doesNotMatch(text, /[\u202e\u2066\u200b\ufeff]/)
    await page.context().close()
  })

  test('a line of a megabyte, ten thousand fields and a deep nest leave the page usable', async () => {
    const many = Object.fromEntries(Array.from({ length: 10_000 }, (_, n) => [`field ${n}`, n]))
    const bodies = [
      JSON.stringify({ message: { text: 'x'.repeat(1_000_000) } }),
      JSON.stringify({ message: { text: 'many' }, meta: many }),
      `{"message":{"text":"deep"},"meta":${'['.repeat(20_000)}${']'.repeat(20_000)}}`,
    ]
    const page = await shared.desk.open('events')
    await untilLive(page)
    for (const body of bodies) {
      const { id } = (await (await shared.desk.post(body)).json()) as { id: number }
      await page.goto(`${shared.desk.url}/console/1/1/events/${id}`)
      await page.locator('.facts').waitFor()
      await page.getByRole('tab', { name: 'Raw' }).click()
      await page.locator('.line').nth(5).waitFor()
      await page.locator('.line-view').evaluate((element) => element.scrollTo(0, element.scrollHeight))
      await until('the end is shown', async () => (await page.locator('.line').last().textContent())!.endsWith('}'))
      const nodes = await page.evaluate(() => document.querySelectorAll('*').length)
      assert.ok(nodes < 3000, `${nodes} elements`)
      await page.getByRole('tab', { name: 'Fields' }).click()
      await page.locator('.fields').waitFor()
    }
    await page.getByRole('link', { name: 'Overview' }).click()
    await page.locator('main h1', { hasText: 'Overview' }).waitFor()
    await page.context().close()
  })
})
