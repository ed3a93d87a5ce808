// From an empty database, with nothing but what the terminal prints: signed in, one message sent, seen as it comes in.

import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { missingChromium } from '../support/chromium.ts'
import { runToEnd } from '../support/command.ts'
import { intray } from '../support/process.ts'
import { sharedDesk, signInByLink, untilLive } from './support/desk.ts'

describe('the first minute with the console', { skip: missingChromium() }, () => {
  const shared = sharedDesk()
  test('the printed link signs in, and the printed curl line appears in the empty list without a reload', async () => {
    const { desk } = shared
    const context = await desk.newContext()
    const page = await context.newPage()
    await signInByLink(page, desk.link)
    assert.equal(new URL(page.url()).pathname, '/console/1/1/overview')
    await page.getByRole('link', { name: 'Events' }).click()
    await page.getByText('No events yet').waitFor()
    assert.match((await page.locator('.empty pre').textContent())!, new RegExp(`curl -sS ${desk.url}/v1/inbox/events`))
    await untilLive(page)
    await page.evaluate(() => Object.assign(window, { neverReloaded: true }))
    const { code, stderr } = await runToEnd(['sh', '-c', desk.curlLine], {})
    assert.equal(code, 0, stderr)
    await page.getByRole('list', { name: 'Events' }).getByText('Hello, Intray').waitFor()

    await page.getByRole('button', { name: 'Pause' }).click()
    await desk.post({ message: { text: 'while it was paused' } })
    await page.getByText('Paused. 1 new.').waitFor()
    assert.equal(await page.getByText('while it was paused').count(), 0, 'paused, nothing moves')
    await page.getByRole('button', { name: 'Resume' }).click()
    await page.getByText('while it was paused').waitFor()
    assert.equal(await page.evaluate(() => 'neverReloaded' in window), true)
    await context.close()
  })

  test('the link works once: a second time it leads to the sign-in page, which says why', async () => {
    const context = await shared.desk.newContext()
    const page = await context.newPage()
    await page.goto(shared.desk.link)
    await page.getByRole('heading', { name: 'Sign in' }).waitFor()
    assert.ok((await page.getByRole('alert').textContent())!.length > 20)
    assert.ok(!page.url().includes('link'), 'the code is not in the address')
    await context.close()
  })

  test('an operator with a password signs in, looks, changes nothing, and signs out', async () => {
    await intray(['operator', 'add', 'vera', '--role', 'viewer'], shared.desk.env)
    const password = 'correct horse battery staple'
    const command = `printf '%s\\n' '${password}' | ./intray operator password vera`
    const { code, stderr } = await runToEnd(['sh', '-c', command], shared.desk.env)
    assert.equal(code, 0, stderr)
    const viewer = await shared.desk.newContext()
    const other = await viewer.newPage()
    await other.goto(`${shared.desk.url}/console/1/1/tokens`)
    await other.getByLabel('Name').fill('vera')
    await other.getByLabel('Password').fill('something else')
    await other.getByRole('button', { name: 'Sign in' }).click()
    await other.getByRole('alert').waitFor()
    await other.getByLabel('Password').fill(password)
    await other.getByRole('button', { name: 'Sign in' }).click()
    await other.getByRole('heading', { name: 'Tokens' }).waitFor()
    assert.equal(await other.getByRole('button', { name: 'Create a token' }).isDisabled(), true)
    await other.getByRole('button', { name: 'Sign out' }).click()
    await other.getByRole('heading', { name: 'Sign in' }).waitFor()
    await other.reload()
    await other.getByRole('heading', { name: 'Sign in' }).waitFor()
    await viewer.close()
  })
})
