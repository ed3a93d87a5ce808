// The Telegram bot against a stand-in of the Bot API over real HTTP: it keeps what was not confirmed and gives it again, as
// Telegram does.

import assert from 'node:assert/strict'
import http from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { describe, type TestContext, test } from 'node:test'
import { drivers } from '../../support/drivers.ts'
import { sharedApp } from '../../support/shared-app.ts'
import { tempFolder } from '../../support/temp.ts'
import { until, within } from '../../support/until.ts'
import { startProxy } from '../typescript/proxy.ts'
import { makeDue, storedAfter, typescriptExample } from './kit.ts'

const TOKEN = '77:secret-of-the-bot'
const ME = { id: 77, is_bot: true, first_name: 'Shop', username: 'shop_bot' }

function update(n: number, chatId = -1002003): object {
  return {
    update_id: n,
    message: {
      message_id: n,
      date: 1_800_000_000,
      from: { id: 9, is_bot: false, first_name: 'Ada', last_name: 'Lovelace' },
      chat: { id: chatId, type: 'supergroup', title: 'Customers' },
      text: `Do you ship to Malta? 🙂 ${n}`,
    },
  }
}

interface BotApi {
  readonly url: string
  /** Chats that were thanked. */
  readonly thanked: number[]
  /** Leaves the bot without an answer to its thanks. */
  isHanging: boolean
  /** Updates up to this id are forgotten: the bot has confirmed them. */
  readonly confirmed: number
  give(...updates: readonly object[]): void
}

async function startBotApi(t: TestContext): Promise<BotApi> {
  const waiting: { readonly update_id: number }[] = []
  const thanked: number[] = []
  let confirmed = 0
  /** The long poll that is open. */
  let answerPoll: (() => void) | null = null
  const calls: Record<string, (body: Record<string, unknown>, answer: (result: unknown) => void) => void> = {
    getMe: (_body, answer) => answer(ME),
    deleteWebhook: (_body, answer) => answer(true),
    sendMessage: ({ chat_id }, answer) => {
      thanked.push(Number(chat_id))
      if (api.isHanging) return
      answer({ message_id: 1, date: 1, chat: { id: chat_id, type: 'private' }, text: '' })
    },
    getUpdates: ({ offset = 0 }, answer) => {
      confirmed = Math.max(confirmed, Number(offset) - 1)
      answerPoll = () => {
        const due = waiting.filter(({ update_id }) => update_id > confirmed)
        if (due.length === 0) return
        answerPoll = null
        answer(due)
      }
      answerPoll()
    },
  }
  const server = http.createServer(async (request, response) => {
    let text = ''
    for await (const chunk of request) text += chunk
    const call = calls[request.url!.replace(`/bot${TOKEN}/`, '')]
    if (!call) return void response.writeHead(404).end('{"ok":false,"error_code":404,"description":"Not Found"}')
    call(text ? (JSON.parse(text) as Record<string, unknown>) : {}, (result) => {
      response.setHeader('Content-Type', 'application/json').end(JSON.stringify({ ok: true, result }))
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.after(() => {
    server.closeAllConnections()
    server.close()
  })
  const api: BotApi = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    thanked,
    isHanging: false,
    get confirmed() {
      return confirmed
    },
    give: (...updates) => {
      waiting.push(...(updates as { update_id: number }[]))
      answerPoll?.()
    },
  }
  return api
}

describe('the Telegram bot', () => {
  const shared = sharedApp(drivers[0]!)

  test('thanks when a message is on disk; what Telegram gives again after a kill is stored once', async (t) => {
    const { app } = shared
    const before = await app.store.events.watermark()
    const api = await startBotApi(t)
    const proxy = await startProxy(t, app.url)
    // The service is away until the bot was killed.
    proxy.fate = () => ({ status: 503 })
    const env = {
      INBOX_URL: proxy.url,
      INBOX_TOKEN: app.token,
      TELEGRAM_TOKEN: TOKEN,
      TELEGRAM_API: api.url,
      BOT_OUTBOX: join(tempFolder('bot'), 'outbox.db'),
    }
    api.give(update(5), update(6), update(7, 9))
    api.isHanging = true
    const killed = typescriptExample(t, 'telegram-bot/bot.ts', env)
    await until('the first message is on disk', () => api.thanked.length === 1)
    await killed.stop('SIGKILL')
    assert.equal(api.confirmed, 0)
    api.isHanging = false
    makeDue(env.BOT_OUTBOX)
    proxy.fate = () => 'pass'

    const bot = typescriptExample(t, 'telegram-bot/bot.ts', env)
    await until('Telegram may forget the messages', () => api.confirmed === 7)
    await until('all are stored', async () => (await storedAfter(app, before)).length === 3)
    assert.deepEqual(api.thanked, [-1002003, -1002003, -1002003, 9], 'the first one came twice')
    assert.equal(await bot.stop('SIGTERM'), 0)
    const stored = await storedAfter(app, before)
    assert.deepEqual(stored.map(({ sourceRef, channelRef }) => [sourceRef, channelRef]).toSorted(), [
      ['telegram:77:-1002003:5', 'telegram:77:-1002003'],
      ['telegram:77:-1002003:6', 'telegram:77:-1002003'],
      ['telegram:77:9:7', 'telegram:77:9'],
    ])
    const { payload } = stored.find(({ sourceRef }) => sourceRef?.endsWith(':5'))!
    assert.deepEqual(payload.contact, { name: 'Ada Lovelace' })
    assert.deepEqual(payload.message, { type: 'text', text: 'Do you ship to Malta? 🙂 5' })
    assert.deepEqual(payload.meta, { update: update(5) })
  })

  test('a message that cannot be kept is neither thanked nor confirmed: the bot ends, and says why without its token', async (t) => {
    const api = await startBotApi(t)
    api.give(update(5))
    const bot = typescriptExample(t, 'telegram-bot/bot.ts', {
      INBOX_URL: shared.app.url,
      INBOX_TOKEN: shared.app.token,
      TELEGRAM_TOKEN: TOKEN,
      TELEGRAM_API: api.url,
      BOT_OUTBOX: join(tempFolder('bot'), 'missing', 'outbox.db'),
    })
    assert.equal(await within('the bot to end', bot.ended), 1)
    assert.deepEqual([api.confirmed, api.thanked], [0, []])
    assert.match(bot.said(), /unable to open|ENOENT/)
    assert.ok(!bot.said().includes(TOKEN) && !bot.said().includes(shared.app.token))
  })
})
