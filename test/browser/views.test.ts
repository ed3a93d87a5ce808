// Each view does what it is for.

import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { describe, test } from 'node:test'
import { openStore } from '../../src/store/open.ts'
import { missingChromium } from '../support/chromium.ts'
import { intrayJson } from '../support/command.ts'
import { until } from '../support/until.ts'
import { SENDING, snippet, WORKING } from '../kits/examples/snippets.ts'
import { sharedDesk, untilLive } from './support/desk.ts'
import { process as work, seed } from './support/seed.ts'

describe('the views of the console', { skip: missingChromium() }, () => {
  const shared = sharedDesk(async (desk) => {
    await seed(desk, 140)
    await work(desk)
  })

  test('Overview counts what came in and says it again as a table, live', async () => {
    const page = await shared.desk.open('overview')
    await page.locator('.canvas canvas').waitFor()
    const cameIn = page.locator('.figure', { hasText: 'Received' }).locator('.figure-value')
    await cameIn.getByText('141', { exact: true }).waitFor()
    await untilLive(page)
    await shared.desk.post({ message: { text: 'one more' } })
    await cameIn.getByText('142', { exact: true }).waitFor()
    await page.getByRole('button', { name: 'Table' }).click()
    const rows = page.getByRole('region', { name: 'Messages per minute, as a table' }).locator('tbody tr')
    const sums = await rows.locator('td:nth-child(2)').allTextContents()
    assert.equal(
      sums.reduce((sum, text) => sum + Number(text), 0),
      142,
    )
    await page.getByRole('row', { name: 'invalid_json 1' }).waitFor()
    await page.getByRole('row', { name: 'dead 1' }).waitFor()
    await page.context().close()
  })

  test('Events keeps filters in the address, finds by words, and holds few rows of many', async () => {
    const page = await shared.desk.open('events')
    await page.getByRole('searchbox').fill('showroom')
    await page.waitForURL(/q=showroom/)
    const rows = page.getByRole('list', { name: 'Events' }).getByRole('listitem')
    await until('only matches are shown', async () =>
      (await rows.allTextContents()).every((text) => text.includes('showroom')),
    )
    await page.reload()
    await rows.first().getByText('showroom').waitFor()
    assert.equal(await page.getByRole('searchbox').inputValue(), 'showroom')
    await page.getByRole('button', { name: 'Clear' }).click()
    await page.getByLabel('State').selectOption('dead')
    await until('one is dead', async () => (await rows.count()) === 1)
    await page.getByLabel('State').selectOption('')
    await rows.nth(10).waitFor()
    const list = page.locator('.virtual-list')
    let most = 0
    await until('the oldest is reached', async () => {
      await list.evaluate((element) => element.scrollTo(0, element.scrollHeight))
      most = Math.max(most, await rows.count())
      return (
        (await rows.last().getAttribute('aria-setsize')) !== '-1' && (await rows.last().textContent())!.includes('Ada')
      )
    })
    assert.ok(most < 60, `${most} rows were in the page at once`)
    await page.context().close()
  })

  test('an event shows its fields with warnings, its exact text, and a command that sends it again', async () => {
    const big = '{"source_ref":"big:1","meta":{"form_id":"x","n":12345678901234567890,"price":1.10}}'
    const { id } = (await (await shared.desk.post(big)).json()) as { id: number }
    const context = { permissions: ['clipboard-read', 'clipboard-write'], acceptDownloads: true }
    const page = await shared.desk.open(`events/${id}`, context)
    await page.getByRole('row', { name: /meta › n 12345678901234567890/ }).waitFor()
    await page.getByText('⚠ expected integer, got string').waitFor()
    await page.getByRole('button', { name: 'Copy as curl' }).click()
    const line = await until('the line is in the clipboard', async () => {
      const text = await page.evaluate(() => navigator.clipboard.readText())
      return text.startsWith('curl') && text
    })
    assert.ok(line.includes(`--data-raw '${big}'`) && line.includes(`${shared.desk.url}/v1/inbox/events`), line)
    await page.getByRole('tab', { name: 'Raw' }).click()
    await page.getByText('"price": 1.10').waitFor()
    await page.getByText('"n": 12345678901234567890,').waitFor()
    const downloading = page.waitForEvent('download')
    await page.getByRole('button', { name: 'Download' }).click()
    const download = await downloading
    assert.equal(download.suggestedFilename(), `event-${id}.json`)
    assert.equal(await readFile(await download.path(), 'utf8'), big)
    assert.ok(page.url().endsWith('tab=raw'), 'the tab is in the address')
    await page.context().close()
  })

  test('a revision is shown as a difference and made an event', async () => {
    const page = await shared.desk.open('events?kind=revision')
    await page.getByRole('list', { name: 'Events' }).getByRole('link').first().click()
    await page.getByRole('link', { name: /Revises event/ }).click()
    await page.getByText('2 lines differ').waitFor()
    assert.match((await page.locator('.line[data-mark=removed]').textContent())!, /Two chairs/)
    assert.match((await page.locator('.line[data-mark=added]').textContent())!, /Three chairs/)
    await page.getByRole('button', { name: /Promote revision \d+ to an event/ }).click()
    await page.getByRole('link', { name: /^event \d+$/ }).click()
    await page.getByRole('link', { name: /Promoted from revision/ }).waitFor()
    await page.context().close()
  })

  test('a conversation is a chat that grows as messages come in', async () => {
    const page = await shared.desk.open('conversations')
    await page.getByRole('list', { name: 'Conversations' }).getByText('example.org/contact').click()
    const thread = page.getByRole('region', { name: 'Messages, oldest first' })
    await thread.getByText('Do you ship to Malta?').first().waitFor()
    await thread.getByText('done').first().waitFor()
    await untilLive(page)
    const text = 'the last word in this conversation'
    await shared.desk.post({ channel_ref: 'example.org/contact', message: { text }, contact: { name: 'Ada Lovelace' } })
    await until('it is in the thread', async () => {
      await thread.evaluate((element) => element.scrollTo(0, element.scrollHeight))
      return (await thread.getByText(text).count()) === 1
    })
    await page.context().close()
  })

  test('a refusal says why and what to do, and is accepted once it is corrected', async () => {
    const page = await shared.desk.open('refusals')
    await page.getByRole('list', { name: 'Refusals' }).getByText('invalid_json').click()
    await page.getByText(/column 43: "}" is not expected here|Line 1, column \d+/).waitFor()
    await page.getByText('Fix:').waitFor()
    await page.getByRole('button', { name: /Correct and accept/ }).click()
    const body = page.getByLabel('Corrected body')
    assert.equal(await page.getByRole('button', { name: 'Accept', exact: true }).isDisabled(), true)
    await body.fill('{"message":{"text":"One comma less"}}')
    await page.getByRole('button', { name: 'Accept', exact: true }).click()
    await page.getByRole('link', { name: /^event \d+$/ }).click()
    await page.getByText('accepted_refusal').waitFor()
    await page.getByRole('blockquote').getByText('One comma less').waitFor()
    await page.context().close()
  })

  test('a token of the scope processor is shown with workers', async () => {
    const page = await shared.desk.open('tokens')
    await page.getByRole('button', { name: 'Create a token' }).click()
    await page.getByLabel('Scope').fill('processor')
    await page.getByRole('button', { name: 'Create', exact: true }).click()
    const secret = (await page.getByRole('region', { name: 'The token' }).textContent())!.trim()
    assert.equal(await page.getByRole('tab').count(), Object.keys(WORKING).length)
    for (const [name, file] of Object.entries(WORKING)) {
      await page.getByRole('tab', { name, exact: true }).click()
      const shown = await page.getByRole('region', { name: `Processing with ${name}` }).textContent()
      assert.equal(shown, snippet(file, shared.desk.url, secret))
    }
    await page.context().close()
  })

  test('a token is made, shown once with lines that work, rotated and disabled', async () => {
    const page = await shared.desk.open('tokens')
    await page.getByRole('button', { name: 'Create a token' }).click()
    await page.getByLabel('Label').fill('the shop')
    await page.getByRole('button', { name: 'Create', exact: true }).click()
    const secret = (await page.getByRole('region', { name: 'The token' }).textContent())!.trim()
    assert.match(secret, /^itr_/)
    for (const [name, file] of Object.entries(SENDING)) {
      await page.getByRole('tab', { name, exact: true }).click()
      const shown = await page.getByRole('region', { name: `Sending with ${name}` }).textContent()
      assert.equal(shown, snippet(file, shared.desk.url, secret))
    }
    const ping = () => fetch(`${shared.desk.url}/api/ping`, { headers: { Authorization: `Bearer ${secret}` } })
    assert.equal((await ping()).status, 200)
    await page.getByRole('button', { name: 'Done' }).click()
    await page.getByText('the shop').waitFor()
    assert.ok(!(await page.content()).includes(secret), 'it is nowhere in the page any more')
    const keyId = secret.slice(4, 14)
    await page.getByRole('button', { name: `Rotate ${keyId}` }).click()
    await page.getByRole('button', { name: 'Rotate', exact: true }).last().click()
    await page.getByText('It is shown this once.').waitFor()
    await page.getByRole('button', { name: 'Done' }).click()
    assert.equal((await ping()).status, 200, 'the old one works for the overlap')
    await page.getByRole('button', { name: `Disable ${keyId}` }).click()
    await page.getByRole('button', { name: 'Disable', exact: true }).click()
    await page.getByRole('button', { name: `Enable ${keyId}` }).waitFor()
    await until('it is refused', async () => (await ping()).status === 401)
    await page.context().close()
  })

  test('a token that one server has not said it refuses is not shown as done with', async (t) => {
    const store = await openStore(shared.desk.env.INTRAY_DATABASE_URL!, { role: 'tool' })
    const { token } = (await intrayJson(
      ['token', 'create', '--account', '1', '--company', '1', '--scope', 'cf'],
      shared.desk.env,
    )) as { token: string }
    const keyId = token.slice(4, 14)
    await store.nodes.report({ nodeId: 'cut off', tokenGeneration: 0 })
    t.after(async () => {
      await store.nodes.remove('cut off')
      await store.close()
    })
    const page = await shared.desk.open('tokens')
    await page.getByRole('button', { name: `Disable ${keyId}` }).click()
    await page.getByRole('button', { name: 'Disable', exact: true }).click()
    const dialog = page.getByRole('dialog', { name: `${keyId} is disabled` })
    await dialog.getByText('A running server has not confirmed it').waitFor()
    await dialog.getByRole('button', { name: 'I understand' }).click()
    await page.getByRole('button', { name: `Enable ${keyId}` }).waitFor()
    await page.context().close()
  })

  test('the queue counts the dead first, and brings back what was confirmed', async () => {
    const page = await shared.desk.open('queue?state=dead')
    const dead = page.getByRole('list', { name: 'Events that are dead' }).getByRole('listitem')
    await dead.filter({ hasText: 'Last error: The CRM answered 500.' }).waitFor()
    await page.getByRole('button', { name: 'Count' }).click()
    await page.getByText('1 dead event matches.').waitFor()
    await page.getByRole('button', { name: 'Requeue 1' }).click()
    await page.getByText('1 requeued.').waitFor()
    await page.getByText('No dead events').waitFor()
    await page.context().close()
  })

  test('Try it sends a test event and watches it arrive', async () => {
    const page = await shared.desk.open('try')
    await untilLive(page)
    await page.getByRole('button', { name: 'Send', exact: true }).click()
    await page.getByText('Arrived on the stream').waitFor()
    await page.getByRole('link', { name: /Look at event/ }).click()
    await page.getByText('Origin', { exact: true }).waitFor()
    await page.locator('.facts').getByText('test', { exact: true }).waitFor()
    await page.context().close()
  })
})
