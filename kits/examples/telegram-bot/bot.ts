// A Telegram bot (grammY, long polling): keeps each message in an outbox before it answers, and before Telegram may forget it.
//
// Environment: INBOX_URL, INBOX_TOKEN, TELEGRAM_TOKEN, BOT_OUTBOX [bot-outbox.db], TELEGRAM_API [https://api.telegram.org].

import { Bot } from 'grammy'
import { Intray } from '@intray/client'

const intray = new Intray({
  url: setting('INBOX_URL'),
  token: setting('INBOX_TOKEN'),
  outbox: setting('BOT_OUTBOX', 'bot-outbox.db'),
})
const apiRoot = setting('TELEGRAM_API', 'https://api.telegram.org')
const bot = new Bot(setting('TELEGRAM_TOKEN'), { client: { apiRoot } })

bot.on('message', async (ctx) => {
  const { me, chat, from, message } = ctx
  await intray.send({
    // Telegram counts messages within a chat, and the private chats of each bot on their own.
    source_ref: `telegram:${me.id}:${chat.id}:${message.message_id}`,
    channel_ref: `telegram:${me.id}:${chat.id}`,
    contact: { name: [from.first_name, from.last_name].filter(Boolean).join(' ') },
    message: { type: 'text', text: message.text ?? message.caption ?? '' },
    meta: { update: ctx.update },
  })
  // The message is on disk. A thank-you that fails, because the person blocked the bot for example, changes nothing.
  await ctx.reply('Thank you. We will answer soon.').catch(({ message }: Error) => console.error(message))
})

// grammY's own handler stops the bot, which confirms the update that failed. This way Telegram sends it again after a restart.
bot.catch(({ message }) => {
  console.error(message)
  process.exit(1)
})
// Not bot.stop(): it confirms an update that may not be on disk yet. Intray stores once what Telegram sends again.
process.once('SIGTERM', () => process.exit())

await bot.start({
  allowed_updates: ['message'],
  onStart: ({ username }) => console.log(`listening as @${username}`),
})

function setting(name: string, otherwise = ''): string {
  const value = process.env[name] || otherwise
  if (value === '') throw new Error(`Set ${name}.`)
  return value
}
