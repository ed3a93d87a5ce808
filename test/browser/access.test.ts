// For everybody: WCAG 2.2 AA on every view in both themes, everything by keyboard, and at the width of a phone.

import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { Page } from 'playwright-core'
import { missingChromium } from '../support/chromium.ts'
import { until } from '../support/until.ts'
import { lookInBothThemes, lookWithAxe } from './support/axe.ts'
import { LOOPBACK_ALLOWED, seedEndpoint, seedHook } from './support/connections.ts'
import { sharedDesk } from './support/desk.ts'
import { process as work, seed } from './support/seed.ts'

/** Every view, and what is in it once it is loaded. */
const PLACES: readonly (readonly [string, string])[] = [
  ['overview', '.canvas canvas'],
  ['events', '.row'],
  ['events/1', '.facts'],
  ['events/1?tab=raw', '.line'],
  ['events/41?tab=revisions', '.line'],
  ['events/7?tab=history', '.detail-pane .card'],
  ['events?q=nothing+like+it', '.empty'],
  ['conversations', '.row'],
  ['conversations/1', '.bubble'],
  ['refusals', '.row'],
  ['refusals/1', '.facts'],
  ['tokens', '.wide-table'],
  ['hooks', '.wide-table'],
  ['hooks/HOOK', '.wide-table'],
  ['queue', '.row'],
  ['endpoints', '.wide-table'],
  ['endpoints/crm', '.wide-table'],
  ['endpoints/default', '.empty'],
  ['try', 'textarea'],
]

/** A test looks at a few: on a slow machine each look takes seconds. */
function inParts<T>(all: readonly T[], size = 5): T[][] {
  return Array.from({ length: Math.ceil(all.length / size) }, (_, n) => all.slice(n * size, (n + 1) * size))
}

let hookKeyId = ''

async function go(page: Page, url: string, [path, sign]: readonly [string, string]): Promise<void> {
  await page.goto(`${url}/console/1/1/${path.replace('HOOK', hookKeyId)}`)
  await page.locator(sign).first().waitFor()
}

describe('the console is for everybody', { skip: missingChromium() }, () => {
  const shared = sharedDesk(async (desk, t) => {
    await seed(desk, 40)
    await work(desk)
    hookKeyId = (await seedHook(desk)).keyId
    await seedEndpoint(desk, t)
  }, LOOPBACK_ALLOWED)

  const look = { colorScheme: 'light', bypassCSP: true, reducedMotion: 'reduce' } as const

  for (const [n, places] of inParts(PLACES).entries()) {
    test(`axe finds nothing on any view in either theme, part ${n + 1}`, async () => {
      const page = await shared.desk.open('try', look)
      for (const place of places) {
        await go(page, shared.desk.url, place)
        const { violations, passes } = await lookInBothThemes(page)
        assert.deepEqual(violations, [], place[0])
        assert.ok(passes > 10, 'axe had something to look at')
      }
      await page.context().close()
    })
  }

  test('axe finds nothing in the dialogs and on the sign-in page in either theme', async () => {
    const page = await shared.desk.open('tokens', look)
    await page.getByRole('button', { name: 'Create a token' }).click()
    assert.deepEqual((await lookInBothThemes(page)).violations, [], 'the dialog that makes a token')
    await page.getByRole('button', { name: 'Create', exact: true }).click()
    await page.getByText('It is shown this once.').waitFor()
    assert.deepEqual((await lookInBothThemes(page)).violations, [], 'the token that is shown once')
    await page.keyboard.press('Escape')
    await go(page, shared.desk.url, ['hooks', '.wide-table'])
    await page.getByRole('button', { name: 'Create a hook' }).click()
    await page.getByText('Scope and limits').click()
    assert.deepEqual((await lookInBothThemes(page)).violations, [], 'the dialog that makes a hook')
    await page.getByRole('button', { name: 'Create', exact: true }).click()
    await page.getByText('It is shown this once.').waitFor()
    assert.deepEqual((await lookInBothThemes(page)).violations, [], 'what to paste at the vendor')
    await page.keyboard.press('Escape')
    await go(page, shared.desk.url, ['endpoints/crm', '.wide-table'])
    await page.getByRole('button', { name: 'Send a test' }).click()
    await page.locator('.line').first().waitFor()
    await page.getByRole('button', { name: 'Edit' }).click()
    await page.getByLabel('Replace all 2').check()
    assert.deepEqual((await lookInBothThemes(page)).violations, [], 'the dialog that edits an endpoint')
    await page.keyboard.press('Escape')
    await page.getByRole('button', { name: 'Keyboard and help' }).click()
    assert.deepEqual((await lookInBothThemes(page)).violations, [], 'help')
    await page.context().clearCookies()
    await page.goto(`${shared.desk.url}/console`)
    await page.getByRole('heading', { name: 'Sign in' }).waitFor()
    assert.deepEqual((await lookInBothThemes(page)).violations, [], 'the sign-in page')
    await page.context().close()
  })

  test('the control: axe finds an image without a text, a grey on grey, and what is faint in the dark alone', async () => {
    const page = await shared.desk.open('try', look)
    await page.evaluate(() => {
      const main = document.querySelector('main')!
      main.append(document.createElement('img'))
      const faint = (style: string) => {
        const text = Object.assign(document.createElement('p'), { textContent: 'faint' })
        text.style.cssText = style
        main.append(text)
      }
      faint('color: #999; background: #bbb')
      faint('color: light-dark(#000, #ddd); background: #fff')
    })
    assert.equal((await lookWithAxe(page)).violations.filter((line) => line.includes('light-dark')).length, 0)
    const { violations } = await lookInBothThemes(page)
    assert.ok(violations.some((line) => line.startsWith('dark color-contrast') && line.includes('light-dark')))
    for (const rule of ['image-alt', 'color-contrast']) {
      assert.ok(
        violations.some((line) => line.startsWith(rule)),
        `${rule}: ${violations.join('\n')}`,
      )
    }
    await page.context().close()
  })

  test('the Tab key reaches everything that can be used, on every view', async () => {
    const page = await shared.desk.open('overview')
    for (const place of PLACES) {
      await go(page, shared.desk.url, place)
      await page.evaluate(() => (document.activeElement as HTMLElement | null)?.blur())
      const wanted = await page.evaluate(markWhatCanBeUsed)
      assert.ok(wanted > 8, place[0])
      const missed = await walk(page, wanted)
      assert.deepEqual(missed, [], place[0])
    }
    await page.context().close()
  })

  test('the control: something with a handler and no place in the order of Tab is missed', async () => {
    const page = await shared.desk.open('try')
    await page.evaluate(() => {
      const button = Object.assign(document.createElement('button'), { textContent: 'out of reach', tabIndex: -1 })
      document.querySelector('main')!.append(button)
    })
    const wanted = await page.evaluate(markWhatCanBeUsed)
    const missed = await walk(page, wanted)
    assert.equal(missed.length, 1, missed.join('\n'))
    await page.context().close()
  })

  test('keys: go to a view, move, open, change tabs, search, get help', async () => {
    const page = await shared.desk.open('overview')
    await page.keyboard.press('Tab')
    assert.equal(await page.evaluate(() => document.activeElement?.textContent), 'Skip to the content')
    await page.keyboard.press('Enter')
    await page.keyboard.press('g')
    await page.keyboard.press('e')
    await page.locator('main h1', { hasText: 'Events' }).waitFor()
    await page.locator('.row').first().waitFor()
    await page.keyboard.press('j')
    await page.keyboard.press('j')
    await page.keyboard.press('j')
    await page.keyboard.press('k')
    await until('the second row has the focus', () =>
      page.evaluate(() => (document.activeElement as HTMLElement | null)?.dataset.index === '1'),
    )
    await page.keyboard.press('Enter')
    const fields = page.getByRole('tab', { name: /Fields/ })
    await fields.focus()
    await page.keyboard.press('ArrowRight')
    await page.waitForURL(/tab=raw/)
    await page.keyboard.press('/')
    await page.keyboard.type('showroom')
    await page.keyboard.press('Enter')
    await page.waitForURL(/q=showroom/)
    await page.evaluate(() => (document.activeElement as HTMLElement | null)?.blur())
    await page.keyboard.press('?')
    await page.getByRole('dialog', { name: 'Keyboard shortcuts' }).waitFor()
    await page.getByLabel('Single-key shortcuts').uncheck()
    await page.keyboard.press('Escape')
    await page.getByRole('dialog').waitFor({ state: 'detached' })
    await page.keyboard.press('g')
    await page.keyboard.press('o')
    await page.keyboard.press('?')
    assert.equal(await page.getByRole('dialog').count(), 0, 'shortcuts that are off do nothing')
    assert.match(page.url(), /events/)
    await page.context().close()
  })

  test('at 320 pixels every view is usable: nothing sticks out, and the detail takes the place of the list', async () => {
    const page = await shared.desk.open('overview', {
      viewport: { width: 320, height: 740 },
      hasTouch: true,
      bypassCSP: true,
    })
    for (const place of PLACES) {
      await page.goto(`${shared.desk.url}/console/1/1/${place[0].replace('HOOK', hookKeyId)}`)
      await page.locator('main h1').waitFor()
      await page.locator(place[1]).first().waitFor({ state: 'attached' })
      const widths = await page.evaluate(() =>
        [document.documentElement, ...document.querySelectorAll('.page, dialog')].map(
          (one) => one.scrollWidth - one.clientWidth,
        ),
      )
      assert.deepEqual(
        widths.filter((over) => over > 0),
        [],
        place[0],
      )
    }
    await page.goto(`${shared.desk.url}/console/1/1/events`)
    await page.locator('.row').first().tap()
    await page.locator('.facts').waitFor()
    assert.equal(await page.getByRole('list', { name: 'Events' }).isVisible(), false)
    await page.getByRole('link', { name: '← All events' }).tap()
    await page.locator('.row').first().waitFor()
    await page.getByRole('button', { name: 'Menu' }).tap()
    await page.getByLabel('Theme').selectOption('dark')
    assert.equal(await page.evaluate(() => document.documentElement.dataset.theme), 'dark')
    await page.context().close()
  })
})

/** Numbers everything that can be used. Of a group that the arrows move in, one stands for all. */
function markWhatCanBeUsed(): number {
  const all = document.querySelectorAll<HTMLElement>('a[href], button, input, select, textarea, [tabindex="0"]')
  const usable = [...all].filter(
    (element) =>
      element.checkVisibility() &&
      !element.matches(':disabled') &&
      !(element.tabIndex === -1 && element.closest('[role=tablist], .virtual-list')),
  )
  usable.forEach((element, n) => {
    element.dataset.walk = String(n)
  })
  return usable.length
}

/** Presses Tab until everything was reached or it began anew; what was not reached. */
async function walk(page: Page, wanted: number): Promise<string[]> {
  const reached = new Set<string>()
  for (let presses = 0; presses < wanted * 2 + 10 && reached.size < wanted; presses++) {
    await page.keyboard.press('Tab')
    const here = await page.evaluate(() => (document.activeElement as HTMLElement | null)?.dataset.walk ?? null)
    if (here !== null) reached.add(here)
  }
  return page.evaluate(
    (seen) =>
      [...document.querySelectorAll<HTMLElement>('[data-walk]')]
        .filter((element) => !seen.includes(element.dataset.walk!))
        .map((element) => element.outerHTML.slice(0, 120)),
    [...reached],
  )
}
