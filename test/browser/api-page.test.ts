// The page at /docs in a real browser: on a phone and on a desktop, by keyboard, against WCAG 2.2 AA.

import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import type { Browser, BrowserContextOptions, Page } from 'playwright-core'
import { missingChromium } from '../support/chromium.ts'
import { drivers } from '../support/drivers.ts'
import { sharedApp } from '../support/shared-app.ts'
import { DEADLINE_MS } from '../support/until.ts'
import { lookInBothThemes } from './support/axe.ts'
import { launchBrowser } from './support/desk.ts'

const PHONE = { width: 390, height: 844 }
const DESKTOP = { width: 1280, height: 800 }

describe('the page at /docs', { skip: missingChromium() }, () => {
  const shared = sharedApp(drivers[0]!)
  let browser: Browser
  let close = () => {}
  before(async () => {
    browser = await launchBrowser({ after: (cleanUp) => (close = cleanUp as () => void) })
  })
  after(() => close())

  const open = async (options: BrowserContextOptions): Promise<Page> => {
    const context = await browser.newContext(options)
    context.setDefaultTimeout(DEADLINE_MS)
    const page = await context.newPage()
    await page.goto(`http://localhost:${shared.app.port}/docs`)
    return page
  }
  /** The language of the examples that are shown. */
  const shown = (page: Page) =>
    page.locator('.example pre:visible').evaluateAll((all) => all.map((one) => one.className))

  for (const [name, viewport] of Object.entries({ phone: PHONE, desktop: DESKTOP })) {
    test(`opens on content on a ${name}: the first request is in view, and nothing is wider than the screen`, async () => {
      const page = await open({ viewport })
      const box = await page.locator('.example pre:visible').first().boundingBox()
      assert.ok(box && box.y + box.height < viewport.height, JSON.stringify(box))
      assert.equal(await page.evaluate(() => document.documentElement.scrollWidth), viewport.width)
      const text = await page.locator('.example pre:visible').first().textContent()
      assert.ok(text?.startsWith(`curl -sS http://localhost:${shared.app.port}/api/ping`), String(text))
      assert.equal(await page.locator('nav:visible').count(), name === 'phone' ? 0 : 1)
      await page.context().close()
    })
  }

  test('a language chosen at one example is that of all, by mouse and by keyboard', async () => {
    const page = await open({ viewport: DESKTOP })
    assert.deepEqual([...new Set(await shown(page))], ['in-curl'])
    await page.locator('.tabs label', { hasText: 'Python' }).first().click()
    assert.deepEqual([...new Set(await shown(page))], ['in-Python'])
    await page.locator('#language-Python').focus()
    await page.keyboard.press('ArrowUp')
    assert.deepEqual([...new Set(await shown(page))], ['in-PHP'])
    await page.context().close()
  })

  test('the list of contents of a phone opens and leads to an operation', async () => {
    const page = await open({ viewport: PHONE })
    await page.locator('.contents summary').click()
    await page.locator('.contents a', { hasText: '/v1/inbox/claims/ack' }).click()
    await page.waitForURL(/#post-v1-inbox-claims-ack$/)
    await page.context().close()
  })

  test('axe finds nothing, in either theme', async () => {
    const page = await open({ viewport: DESKTOP, bypassCSP: true })
    const { violations, passes } = await lookInBothThemes(page)
    assert.deepEqual(violations, [])
    assert.ok(passes > 10)
    await page.context().close()
  })
})
