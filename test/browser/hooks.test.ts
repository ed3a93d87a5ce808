// The page of hooks: from an address to the first delivery, and every change of it.

import assert from 'node:assert/strict'
import { createHmac } from 'node:crypto'
import { describe, test } from 'node:test'
import type { Page } from 'playwright-core'
import { missingChromium } from '../support/chromium.ts'
import { until } from '../support/until.ts'
import { createHook, openAsViewer, type SeededHook, telegram } from './support/connections.ts'
import { sharedDesk, untilLive } from './support/desk.ts'

/** The text of a field to copy, in the dialog that is open. */
async function copied(page: Page, name: string): Promise<string> {
  return (await page.getByRole('dialog').getByRole('region', { name, exact: true }).textContent())!.trim()
}

const deliveries = (page: Page) => page.locator('table').getByRole('row')

describe('hooks in the console', { skip: missingChromium() }, () => {
  const shared = sharedDesk()

  test('a hook is made, shown with what to paste at the vendor, and its deliveries appear without a reload', async () => {
    const page = await shared.desk.open('hooks')
    await page.getByText('This tenant has no hook').waitFor()
    await page.getByRole('button', { name: 'Create a hook' }).click()
    await page.getByLabel('Vendor').selectOption('telegram')
    await page.getByLabel('Name').fill('support bot')
    await page.getByRole('button', { name: 'Create', exact: true }).click()
    await page.getByText('It is shown this once.').waitFor()
    const hook: SeededHook = { keyId: '', url: await copied(page, 'Address'), secret: await copied(page, 'Secret') }
    assert.ok(hook.url.startsWith(`${shared.desk.url}/v1/hooks/ith_`), hook.url)
    const steps = page.getByRole('dialog').getByRole('list', { name: 'Steps at the vendor' })
    assert.ok((await steps.textContent())!.includes(`setWebhook with url=${hook.url} and secret_token=${hook.secret}`))
    await page.getByRole('button', { name: 'Done' }).click()
    await page.getByRole('heading', { name: 'support bot' }).waitFor()
    await page.getByText('Nothing has arrived yet').waitFor()
    assert.ok(!(await page.content()).includes(hook.secret), 'it is nowhere in the page any more')
    const kept = await page.evaluate(() => JSON.stringify({ ...localStorage, ...sessionStorage, at: location.href }))
    assert.ok(!kept.includes(hook.secret) && !kept.includes('ith_'), kept)

    await untilLive(page)
    await page.evaluate(() => Object.assign(window, { neverReloaded: true }))
    assert.equal((await telegram(hook, 1, 'Is it still there?')).status, 200)
    const stored = deliveries(page).filter({ hasText: 'Is it still there?' })
    await stored.getByText('stored').waitFor()
    await stored.getByText(/tg:\w+:1815/).waitFor()
    assert.equal((await telegram({ ...hook, secret: 'of somebody else' }, 2, 'Hello')).status, 401)
    const refused = deliveries(page).filter({ hasText: 'invalid_signature' })
    await refused.getByText("does not hold the hook's secret").waitFor()
    assert.equal((await telegram(hook, 3, ['a', 'list'])).status, 200)
    await page.getByText('/message/text: expected string, got array').waitFor()
    assert.equal(await page.evaluate(() => 'neverReloaded' in window), true)

    await refused.getByRole('link', { name: /^refusal/ }).click()
    await page.getByText('without the recipe of its hook').waitFor()
    assert.equal(await page.getByRole('button', { name: /Correct and accept/ }).count(), 0)
    await page.getByRole('link', { name: 'Hook', exact: true }).click()
    await stored.getByRole('link', { name: /^event/ }).click()
    await page.getByText('telegram/1').waitFor()
    assert.equal(await page.getByRole('button', { name: 'Copy as curl' }).count(), 0, 'it would lose its recipe')
    await page.context().close()
  })

  test('a secret that the vendor makes is entered later: until then requests are refused, and the page says so', async () => {
    const page = await shared.desk.open('hooks')
    await page.getByRole('button', { name: 'Create a hook' }).click()
    await page.getByLabel('Vendor').selectOption('stripe')
    await page.getByRole('button', { name: 'Create', exact: true }).click()
    await page.getByText('Requests are refused until the secret').waitFor()
    const url = await copied(page, 'Address')
    await page.getByRole('button', { name: 'Done' }).click()
    await page.getByText('the secret of the vendor has not been entered yet').waitFor()
    const secret = 'whsec_0123456789abcdef0123456789abcdef'
    const post = () => {
      const body = JSON.stringify({ id: 'evt_1', object: 'event', type: 'customer.created', data: { object: {} } })
      const seconds = Math.floor(Date.now() / 1000)
      const v1 = createHmac('sha256', secret).update(`${seconds}.${body}`).digest('hex')
      const headers = { 'Content-Type': 'application/json', 'Stripe-Signature': `t=${seconds},v1=${v1}` }
      return fetch(url, { method: 'POST', headers, body })
    }
    assert.equal((await post()).status, 401)
    await page.getByRole('button', { name: 'Enter the secret' }).click()
    const dialog = page.getByRole('dialog', { name: 'Enter the secret' })
    await dialog.getByLabel(/Signing secret/).fill(secret)
    await dialog.getByRole('button', { name: 'Enter the secret' }).click()
    await dialog.getByText('Requests are checked with this secret.').waitFor()
    await dialog.getByRole('button', { name: 'Done' }).click()
    await page.getByText('the secret of the vendor has not been entered yet').waitFor({ state: 'detached' })
    assert.ok(!(await page.content()).includes(secret))
    assert.equal((await post()).status, 200)
    await page.getByText('stripe:evt_1').or(page.getByText('evt_1')).first().waitFor()
    await page.context().close()
  })

  test('a sample shows what the recipe reads, with every digit as sent', async () => {
    const hook = await createHook(shared.desk, { recipe: 'telegram', name: 'samples' })
    const page = await shared.desk.open(`hooks/${hook.keyId}`)
    await page.getByRole('button', { name: 'Send a sample' }).click()
    await page
      .getByRole('link', { name: /^event \d+$/ })
      .first()
      .waitFor()
    await deliveries(page).getByText('sample', { exact: true }).waitFor()
    await page.getByLabel('Paste a request of my own').check()
    await page
      .getByLabel('Body, as the vendor sends it')
      .fill('{"update_id":9007199254740993,"message":{"text":"big"}}')
    await page.getByRole('button', { name: 'Send a sample' }).click()
    await page.getByText('tg:hook:9007199254740993').waitFor()
    await page.getByLabel('Body, as the vendor sends it').fill('no JSON at all')
    await page.getByRole('button', { name: 'Send a sample' }).click()
    await page.getByRole('alert').getByText('The recipe does not read this body').waitFor()
    await page.context().close()
  })

  test('the secret and the address are changed with an overlap, and the hook is disabled and enabled', async () => {
    const hook = await createHook(shared.desk, { recipe: 'telegram', name: 'to be changed', expires_in: '30d' })
    let update = 100
    const statusOf = async (changed: Partial<SeededHook>) =>
      (await telegram({ ...hook, ...changed }, ++update, 'Hello')).status
    const page = await shared.desk.open(`hooks/${hook.keyId}`)
    await page.getByRole('button', { name: 'Change the secret' }).click()
    const dialog = page.getByRole('dialog')
    await dialog.getByRole('button', { name: 'Change the secret' }).click()
    await dialog.getByText('It is shown this once.').waitFor()
    const secret = await copied(page, 'Secret')
    await dialog.getByRole('button', { name: 'Done' }).click()
    assert.notEqual(secret, hook.secret)
    assert.deepEqual([await statusOf({ secret }), await statusOf({})], [200, 200], 'both work for the overlap')
    await page.getByText('an older one, valid until').waitFor()

    await page.getByRole('button', { name: 'Change the address' }).click()
    await dialog.getByLabel('The old address').selectOption('24h')
    await dialog.getByLabel('The new address expires').selectOption('365d')
    await dialog.getByRole('button', { name: 'Change the address' }).click()
    await dialog.getByText('Give the vendor the new address.').waitFor()
    const url = await copied(page, 'Address')
    await dialog.getByRole('button', { name: 'Done' }).click()
    await page.getByRole('link', { name: hook.keyId }).waitFor()
    await page.getByText('in 365 d').waitFor()
    assert.deepEqual([await statusOf({ url, secret }), await statusOf({ secret })], [200, 200], 'both are there')

    await page.getByRole('button', { name: 'Disable' }).click()
    await dialog.getByRole('button', { name: 'Disable' }).click()
    await page.getByRole('button', { name: 'Enable' }).waitFor()
    assert.equal(await statusOf({ url, secret }), 401)
    await page.getByRole('button', { name: 'Enable' }).click()
    await page.getByRole('button', { name: 'Disable' }).waitFor()
    await until('it takes messages again', async () => (await statusOf({ url, secret })) === 200)
    await page.context().close()
  })

  test("a recipe of one's own is given as text, and the page says what is wrong with it", async () => {
    const page = await shared.desk.open('hooks')
    await page.getByRole('button', { name: 'Create a hook' }).click()
    await page.getByLabel('Vendor').selectOption('custom')
    await page.getByLabel('Name').fill('our shop')
    await page.getByLabel('Recipe, in JSON or YAML').fill('title: Our shop\nbodies: [json]\nsignature: { kind: magic }')
    await page.getByRole('button', { name: 'Create', exact: true }).click()
    await page.getByRole('alert').waitFor()
    await page
      .getByLabel('Recipe, in JSON or YAML')
      .fill('title: Our shop\nbodies: [json]\nsignature: { kind: none }\nsource_ref: ["shop:{/order}"]')
    await page.getByRole('button', { name: 'Create', exact: true }).click()
    await page.getByText('anyone who has the address can send').first().waitFor()
    const url = await copied(page, 'Address')
    await page.getByRole('button', { name: 'Done' }).click()
    const headers = { 'Content-Type': 'application/json' }
    assert.equal((await fetch(url, { method: 'POST', headers, body: '{"order":12345678901234567890}' })).status, 200)
    await page.getByText('shop:12345678901234567890').waitFor()
    await page.context().close()
  })

  test('a viewer sees hooks and deliveries, and neither their addresses nor a button that works', async () => {
    const hook = await createHook(shared.desk, { recipe: 'elementor', name: 'contact form' })
    const headers = { 'Content-Type': 'application/x-www-form-urlencoded' }
    await fetch(hook.url, { method: 'POST', headers, body: 'name=Ada+Lovelace&message=Do+you+ship+to+Malta%3F' })
    const page = await openAsViewer(shared.desk, 'hooks')
    assert.equal(await page.getByRole('button', { name: 'Create a hook' }).isDisabled(), true)
    await page.getByRole('link', { name: 'contact form' }).click()
    await page.getByText('Only admins see the address').waitFor()
    await deliveries(page).getByText('Do you ship to Malta?').waitFor()
    for (const name of ['Change the address', 'Disable', 'Send a sample']) {
      assert.equal(await page.getByRole('button', { name }).isDisabled(), true, name)
    }
    assert.ok(!(await page.content()).includes(new URL(hook.url).pathname.slice('/v1/hooks/ith_'.length + 11)))
    await page.goto(`${shared.desk.url}/console/1/1/hooks/nosuchhook`)
    await page.getByText('This tenant has no such hook').waitFor()
    await page.context().close()
  })
})
