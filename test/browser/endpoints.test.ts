// The page of endpoints: from a URL to the first delivery, what goes wrong there, and every change of it.

import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { Page } from 'playwright-core'
import { missingChromium } from '../support/chromium.ts'
import { isSignedWith, type Receiver, startReceiver, status } from '../support/receiver.ts'
import { until } from '../support/until.ts'
import { ask, LOOPBACK_ALLOWED, openAsViewer } from './support/connections.ts'
import { type Desk, sharedDesk } from './support/desk.ts'

const deliveries = (page: Page) => page.locator('table').getByRole('row')

/** A subscription that begins now, with an endpoint. */
async function newEndpoint(page: Page, name: string, receiver: Receiver, more: object = {}): Promise<void> {
  await ask(page, '/v1/inbox/subscriptions', { name, from: 'now' })
  await ask(page, `/v1/inbox/subscriptions/${name}/endpoint`, { url: receiver.url, ...more })
}

async function openEndpoint(page: Page, desk: Desk, name: string): Promise<void> {
  await page.goto(`${desk.url}/console/1/1/endpoints/${name}`)
  await page.getByRole('heading', { name }).waitFor()
}

async function send(desk: Desk, texts: readonly string[]): Promise<void> {
  for (const text of texts) assert.equal((await desk.post({ message: { text } })).status, 200)
}

describe('endpoints in the console', { skip: missingChromium() }, () => {
  const shared = sharedDesk(async () => {}, LOOPBACK_ALLOWED)

  test('a subscription gets an endpoint, its secret is shown once, and deliveries and failures appear', async (t) => {
    const receiver = await startReceiver(t)
    const { desk } = shared
    const page = await desk.open('endpoints')
    await page.getByLabel('New subscription').fill('crm')
    await page.getByRole('button', { name: 'Create' }).click()
    await page.getByText('This subscription has no endpoint').waitFor()
    await page.getByRole('button', { name: 'Set an endpoint' }).click()
    await page.getByLabel('URL').fill(receiver.url)
    await page.getByRole('button', { name: 'Add a header' }).click()
    await page.getByLabel('Name').fill('Authorization')
    await page.getByLabel('Value').fill('Bearer of-the-crm')
    await page.getByRole('dialog').getByRole('button', { name: 'Set the endpoint' }).click()
    await page.getByText('It is shown this once.').waitFor()
    const secret = (await page.getByRole('region', { name: 'Signing secret' }).textContent())!.trim()
    assert.match(secret, /^whsec_/)
    await page.getByRole('button', { name: 'Done' }).click()
    await page.getByText('Nothing was delivered yet').waitFor()
    const shownAndKept = await page.evaluate(() => document.documentElement.outerHTML + JSON.stringify(localStorage))
    for (const hidden of [secret, 'of-the-crm', 'in-the-query']) assert.ok(!shownAndKept.includes(hidden), hidden)

    await send(desk, ['the first'])
    await deliveries(page).filter({ hasText: '200' }).getByText(' ms').waitFor()
    const [first] = receiver.received
    assert.ok(first && isSignedWith(secret, first))
    assert.equal(first.headers.authorization, 'Bearer of-the-crm')
    receiver.respond = status(500, {}, 'the CRM is busy')
    await send(desk, ['the second'])
    const failed = deliveries(page).filter({ hasText: 'It answered 500.' })
    await failed.first().waitFor()
    await page
      .locator('.figure', { hasText: 'Failed' })
      .getByText(/^[1-9]/)
      .first()
      .waitFor()
    await failed.first().getByRole('link').click()
    await page.getByText('HTTP 500: the CRM is busy').first().waitFor()
    await page.goto(`${desk.url}/console/1/1/endpoints`)
    await page.getByRole('row', { name: /^crm .*\[redacted\] active/ }).waitFor()
    await page.context().close()
  })

  test('while it is paused events wait; they are delivered when it goes on', async (t) => {
    const [receiver, beside] = [await startReceiver(t), await startReceiver(t)]
    const { desk } = shared
    const page = await desk.open('endpoints')
    await newEndpoint(page, 'paused', receiver)
    await newEndpoint(page, 'beside', beside)
    await openEndpoint(page, desk, 'paused')
    await page.getByRole('button', { name: 'Pause' }).click()
    await page.getByText('Paused by an operator: events wait').waitFor()
    await until('an event comes to the other one alone', async () => {
      const [before, besides] = [receiver.received.length, beside.received.length]
      await send(desk, ['while it was paused'])
      await until('the other one has it', () => beside.received.length > besides)
      return receiver.received.length === before
    })
    const before = receiver.received.length
    await page.getByRole('button', { name: 'Resume' }).click()
    await page.getByRole('button', { name: 'Pause' }).waitFor()
    await until('what waited has come', () => receiver.received.length > before)
    await deliveries(page).filter({ hasText: '200' }).first().waitFor()
    await page.context().close()
  })

  test('a test shows what the endpoint answered, with every digit, or why it was not reached', async (t) => {
    const receiver = await startReceiver(t, status(200, {}, '{"ticket":12345678901234567890,"price":1.10}'))
    const { desk } = shared
    const page = await desk.open('endpoints')
    await newEndpoint(page, 'tested', receiver)
    await openEndpoint(page, desk, 'tested')
    const answer = page.getByRole('region', { name: 'The beginning of the answer' })
    await page.getByRole('button', { name: 'Send a test' }).click()
    await answer.getByText('"ticket": 12345678901234567890,').waitFor()
    await answer.getByText('"price": 1.10').waitFor()
    assert.equal(receiver.received.at(-1)?.headers['intray-test'], 'true')
    await page.getByRole('button', { name: 'Edit' }).click()
    await page.getByLabel('URL').fill('http://169.254.169.254/latest')
    await page.getByRole('button', { name: 'Save' }).click()
    await page.getByRole('dialog').waitFor({ state: 'detached' })
    await page.getByRole('button', { name: 'Send a test' }).click()
    await page.getByText('no answer', { exact: false }).first().waitFor()
    await page
      .getByText(/INTRAY_PUSH_ALLOW|may not|not allowed/)
      .first()
      .waitFor()
    await page.context().close()
  })

  test('the secret is rotated: the old one signs beside the new one for the overlap', async (t) => {
    const receiver = await startReceiver(t)
    const { desk } = shared
    const page = await desk.open('endpoints')
    await ask(page, '/v1/inbox/subscriptions', { name: 'rotated', from: 'now' })
    const { endpoint } = await ask<{ endpoint: { secret: string } }>(page, '/v1/inbox/subscriptions/rotated/endpoint', {
      url: receiver.url,
    })
    await openEndpoint(page, desk, 'rotated')
    await page.getByRole('button', { name: 'Rotate the secret' }).click()
    await page.getByRole('button', { name: 'Rotate', exact: true }).click()
    await page.getByText('It is shown this once.').waitFor()
    const secret = (await page.getByRole('region', { name: 'Signing secret' }).textContent())!.trim()
    // A secret that is shown once must not disappear because the page behind it fails.
    const endpointOfPage = '**/v1/inbox/subscriptions/rotated/endpoint'
    await page.route(endpointOfPage, (route) => route.fulfill({ status: 500, body: '{}' }))
    await page.locator('.page > .trouble').waitFor()
    assert.equal((await page.getByRole('region', { name: 'Signing secret' }).textContent())!.trim(), secret)
    await page.unroute(endpointOfPage)
    await page.getByRole('button', { name: 'Done' }).click()
    await page.getByText(', signs until').waitFor()
    await page.getByRole('button', { name: 'Send a test' }).click()
    const received = await until('the test has come', () => receiver.received[0])
    assert.deepEqual(
      [endpoint.secret, secret].map((one) => isSignedWith(one, received)),
      [true, true],
    )
    await page.context().close()
  })

  test('a range is counted, and only then delivered again, under the same webhook-ids', async (t) => {
    const receiver = await startReceiver(t)
    const { desk } = shared
    const page = await desk.open('endpoints')
    await newEndpoint(page, 'replayed', receiver)
    await send(desk, ['one', 'two', 'three'])
    await until('all were delivered', () => receiver.received.length === 3)
    await openEndpoint(page, desk, 'replayed')
    const ids = receiver.received.map(({ eventId }) => eventId)
    await page.getByLabel('From event').fill(String(Math.min(...ids)))
    await page.getByLabel('To event').fill(String(Math.max(...ids) - 1))
    await until('both are counted as done', async () => {
      await page.getByRole('button', { name: 'Count' }).click()
      await page.getByText(/done or dead\./).waitFor()
      return (await page.getByText('2 events are done or dead.').count()) === 1
    })
    assert.equal(receiver.received.length, 3, 'counting delivers nothing')
    await page.getByRole('button', { name: 'Deliver 2 again' }).click()
    await page.getByText('2 will be delivered again.').waitFor()
    await until('they came again', () => receiver.received.length === 5)
    const again = receiver.received.slice(3).map(({ id }) => id)
    assert.ok(again.every((id) => receiver.received.slice(0, 3).some((one) => one.id === id)))
    await page.context().close()
  })

  test('an endpoint that is gone, and one that fails in a row, say so', async (t) => {
    const receiver = await startReceiver(t, status(410, {}, 'moved away'))
    const failing = await startReceiver(t, status(500))
    const { desk } = shared
    const page = await desk.open('endpoints')
    await newEndpoint(page, 'gone', receiver)
    await newEndpoint(page, 'failing', failing)
    await send(
      desk,
      Array.from({ length: 12 }, (_, n) => `event ${n}`),
    )
    await openEndpoint(page, desk, 'gone')
    await page.getByText('Disabled, and events wait in the queue').getByText('410').waitFor()
    await page.getByRole('button', { name: 'Resume' }).waitFor()
    await openEndpoint(page, desk, 'failing')
    await page.getByText('The circuit is open after failures in a row').waitFor()
    await page.getByText('Next try:').waitFor()
    await page.context().close()
  })

  test('an edit leaves what was not entered as it was, and the endpoint is removed after a question', async (t) => {
    const receiver = await startReceiver(t)
    const { desk } = shared
    const page = await desk.open('endpoints')
    const headers = [{ name: 'Authorization', value: 'Bearer kept' }]
    await newEndpoint(page, 'edited', receiver, { headers })
    await openEndpoint(page, desk, 'edited')
    await page.getByRole('button', { name: 'Edit' }).click()
    await page.getByLabel('Body').selectOption('raw')
    await page.getByLabel('Time limit in seconds').fill('20')
    await page.getByRole('button', { name: 'Save' }).click()
    await page.getByText('raw: the payload as it was sent').waitFor()
    await page.getByText('20 s', { exact: true }).waitFor()
    await page.getByRole('button', { name: 'Send a test' }).click()
    const received = await until('the test has come', () => receiver.received[0])
    assert.equal(received.headers.authorization, 'Bearer kept')
    await page.getByRole('button', { name: 'Remove' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Remove' }).click()
    await page.getByText('This subscription has no endpoint').waitFor()
    await page.context().close()
  })

  test('a viewer sees endpoints and deliveries, and no button works', async (t) => {
    const receiver = await startReceiver(t)
    const { desk } = shared
    const admin = await desk.open('endpoints')
    await newEndpoint(admin, 'seen', receiver)
    await admin.context().close()
    const page = await openAsViewer(desk, 'endpoints')
    assert.equal(await page.getByRole('button', { name: 'Create' }).isDisabled(), true)
    await page.getByRole('link', { name: 'seen' }).click()
    await page.getByRole('heading', { name: 'seen' }).waitFor()
    for (const name of ['Pause', 'Edit', 'Rotate the secret', 'Remove', 'Send a test', 'Count']) {
      assert.equal(await page.getByRole('button', { name }).isDisabled(), true, name)
    }
    await page.goto(`${desk.url}/console/1/1/endpoints/nothing-like-it`)
    await page.getByText('This tenant has no such subscription').waitFor()
    await page.context().close()
  })
})
