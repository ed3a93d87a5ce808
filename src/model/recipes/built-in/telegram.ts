// Telegram: updates of one bot, authenticated by the secret token that setWebhook was given. Each bot counts its updates on its own, and
// a private chat has the id of the person with every bot: so the hook is part of the references.

import type { BuiltInRecipe } from '../recipe.ts'

/** What an update is about; each holds a chat. */
const MESSAGES = ['message', 'edited_message', 'channel_post', 'edited_channel_post', 'business_message']
const WITH_CHAT = [...MESSAGES, 'callback_query/message', 'my_chat_member', 'chat_member', 'message_reaction']
const WITH_SENDER = [...MESSAGES, 'callback_query', 'my_chat_member', 'inline_query']
const PARTS = ['photo', 'voice', 'audio', 'video', 'video_note', 'document', 'sticker', 'location', 'contact', 'poll']

export const telegram: BuiltInRecipe = {
  name: 'telegram',
  version: '1',
  title: 'Telegram bot',
  bodies: ['json'],
  signature: { kind: 'header', header: 'x-telegram-bot-api-secret-token' },
  sourceRef: ['tg:{hook}:{/update_id}'],
  channelRef: [...WITH_CHAT.map((part) => `tg:{hook}:{/${part}/chat/id}`), 'tg:{hook}:{/callback_query/from/id}'],
  batch: [],
  index: {
    contactName: [
      ...WITH_SENDER.map((part) => `{/${part}/from/first_name} {/${part}/from/last_name}`),
      ...WITH_SENDER.map((part) => `{/${part}/from/first_name}`),
      '{/channel_post/chat/title}',
    ],
    contactEmail: [],
    messageType: [
      'text{?/message/text}',
      ...PARTS.map((part) => `${part}{?/message/${part}}`),
      ...['edited_message', 'channel_post', 'edited_channel_post', 'business_message'].map(typeOfPart),
      ...['callback_query', 'inline_query', 'my_chat_member', 'chat_member', 'message_reaction'].map(typeOfPart),
      'message{?/message}',
    ],
    text: [
      ...MESSAGES.flatMap((part) => [`{/${part}/text}`, `{/${part}/caption}`]),
      '{/callback_query/data}',
      '{/inline_query/query}',
    ],
  },
  answer: null,
  guide: {
    secret: { from: 'intray', name: 'Secret token' },
    steps: [
      'Call https://api.telegram.org/bot<token>/setWebhook with url={url} and secret_token={secret}.',
      'To get reactions and membership changes, name them in allowed_updates.',
    ],
  },
}

function typeOfPart(part: string): string {
  return `${part}{?/${part}}`
}
