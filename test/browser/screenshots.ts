// Takes the pictures of docs/operating/console/ anew: `node_modules/.bin/node test/browser/screenshots.ts`. Not a test; run it when the
// console looks different.

import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import { buildConsole } from '../../src/cli/console-build.ts'
import { newUuid } from '../../src/runtime/id.ts'
import { openStore } from '../../src/store/open.ts'
import { ROOT } from '../support/process.ts'
import { LOOPBACK_ALLOWED, seedEndpoint, seedHook } from './support/connections.ts'
import { type Desk, openDesk, untilLive } from './support/desk.ts'
import { process as work, seed } from './support/seed.ts'
import { smallPng } from './support/small-png.ts'

const FOLDER = join(ROOT, 'docs/operating/console')
const MAX_BYTES = 80 * 1024

const PICTURES = [
  { name: 'overview', path: 'overview', sign: '.canvas canvas' },
  { name: 'events', path: 'events/ID', sign: '.facts', dark: true },
  { name: 'conversation', path: 'conversations/CONVERSATION', sign: '.bubble' },
  { name: 'revision', path: 'events/REVISED?tab=revisions', sign: '.line' },
  { name: 'refusal', path: 'refusals/1', sign: '.facts', dark: true },
  { name: 'tokens', path: 'tokens', sign: '.wide-table' },
  { name: 'hook', path: 'hooks/HOOK', sign: '.wide-table' },
  { name: 'endpoint', path: 'endpoints/crm', sign: '.wide-table' },
  { name: 'queue', path: 'queue', sign: '.row', dark: true },
  { name: 'phone', path: 'events', sign: '.row', width: 360 },
] as const

await buildConsole({ say: console.log })
const cleanUps: (() => unknown)[] = []
try {
  const t = { after: (cleanUp: unknown) => void cleanUps.push(cleanUp as () => unknown) } as Pick<TestContext, 'after'>
  const desk = await openDesk(t, { ...LOOPBACK_ALLOWED, INTRAY_PUBLIC_URL: 'https://in.example.com' })
  await pastHour(desk)
  await seed(desk, 24)
  await work(desk)
  const { keyId } = await seedHook(desk)
  await seedEndpoint(desk, t)
  const ids = { ...(await idsToShow(desk)), HOOK: keyId }
  mkdirSync(FOLDER, { recursive: true })
  for (const picture of PICTURES) await take(desk, picture, ids)
} finally {
  for (const cleanUp of cleanUps.toReversed()) await cleanUp()
}

async function take(
  desk: Desk,
  picture: (typeof PICTURES)[number],
  ids: Record<string, number | string>,
): Promise<void> {
  const width = 'width' in picture ? picture.width : 1200
  const colorScheme = 'dark' in picture ? 'dark' : 'light'
  const path = picture.path.replace(/[A-Z]{2,}/, (name) => String(ids[name]))
  const page = await desk.open(path, { viewport: { width, height: 720 }, colorScheme })
  await page.locator(picture.sign).first().waitFor()
  await untilLive(page)
  const file = join(FOLDER, `${picture.name}.png`)
  const bytes = smallPng(await page.screenshot())
  writeFileSync(file, bytes)
  const size = bytes.length
  console.log(`${picture.name}.png ${size} bytes${size > MAX_BYTES ? ': TOO LARGE' : ''}`)
  await page.context().close()
}

async function idsToShow(desk: Desk): Promise<Record<string, number>> {
  const evil = { name: 'Kim \u202egpj.exe', email: 'kim@example.org' }
  const message = { type: 'text', text: 'Please open the attached offer.\nNumbers stay as they were sent.' }
  const body = JSON.stringify({ source_ref: 'shop:5512', channel_ref: 'example.org/offers', contact: evil, message })
  const meta = ',"meta":{"form_id":"12","order":12345678901234567890,"total":1.10}}'
  const { id } = (await (await desk.post(body.slice(0, -1) + meta)).json()) as { id: number }
  const page = await desk.open('overview')
  const found = await page.evaluate(async () => {
    const read = async (path: string) => (await fetch(path, { headers: { 'Intray-Tenant': '1/1' } })).json()
    const events = (await read('/v1/inbox/events?source_ref=order:77&kind=event')) as { events: { id: number }[] }
    const talk = (await read('/v1/inbox/conversations?channel_ref=whatsapp:4512')) as {
      conversations: { id: number }[]
    }
    return { REVISED: events.events[0]!.id, CONVERSATION: talk.conversations[0]!.id }
  })
  await page.context().close()
  return { ...found, ID: id }
}

/** An hour of traffic, as if it had come in then. */
async function pastHour(desk: Desk): Promise<void> {
  const store = await openStore(desk.env.INTRAY_DATABASE_URL!, { role: 'tool' })
  const payload = Buffer.from('{"channel_ref":"example.org/shop","message":{"type":"text","text":"An order"}}')
  const items = Array.from({ length: 60 }, (_, minute) =>
    Array.from({ length: Math.round(14 + 9 * Math.sin(minute / 6) + (minute % 5)) }, () => ({
      receivedAt: Date.now() - (60 - minute) * 60_000,
    })),
  ).flat()
  await store.journal.append(items.map(({ receivedAt }) => newEvent(desk, payload, receivedAt)))
  await store.close()
}

function newEvent(desk: Desk, payload: Uint8Array, receivedAt: number) {
  return {
    mintedKey: newUuid(),
    accountId: 1,
    companyId: 1,
    receivedAt,
    keyId: desk.token.slice(4, 14),
    scope: 'cf',
    route: '/v1/inbox/events',
    sourceRef: null,
    channelRef: 'example.org/shop',
    idempotencyKey: null,
    contentType: 'application/json',
    origin: 'intake' as const,
    requestId: newUuid(),
    traceparent: null,
    userAgent: null,
    remoteAddr: null,
    recipe: null,
    payload: Buffer.from(payload),
  }
}
