// Samples of telegram requests: shaped as the documentation of the sender shows, with data that is made up.

import { type HookSample, JSON_TYPE } from './sample.ts'

const ada = {
  id: 5_111_222_333,
  is_bot: false,
  first_name: 'Ada',
  last_name: 'Lovelace',
  username: 'ada',
  language_code: 'en',
}
const chat = { id: 5_111_222_333, first_name: 'Ada', last_name: 'Lovelace', type: 'private' }

export const telegramSamples: readonly HookSample[] = [
  {
    title: 'a text message',
    contentType: JSON_TYPE,
    body: JSON.stringify({
      update_id: 729_001_337,
      message: { message_id: 41, from: ada, chat, date: 1_763_500_000, text: 'Do you ship to Malta? 🇲🇹' },
    }),
    sourceRef: 'tg:hook:729001337',
    channelRef: 'tg:hook:5111222333',
    contactName: 'Ada Lovelace',
    contactEmail: null,
    messageType: 'text',
    text: 'Do you ship to Malta? 🇲🇹',
  },
  {
    title: 'a photo with a caption in a group, from somebody without a last name, with ids beyond 2^53',
    contentType: JSON_TYPE,
    body: `{"update_id":9007199254740993,"message":{"message_id":7,"from":{"id":1,"is_bot":false,"first_name":"Grace"},
      "chat":{"id":-1009007199254740995,"title":"Yard","type":"supergroup"},"date":1763500001,
      "photo":[{"file_id":"AgAC","file_unique_id":"AQ","width":90,"height":67}],"caption":"The \\u0022blue\\u0022 one"}}`,
    sourceRef: 'tg:hook:9007199254740993',
    channelRef: 'tg:hook:-1009007199254740995',
    contactName: 'Grace',
    contactEmail: null,
    messageType: 'photo',
    text: 'The "blue" one',
  },
  {
    title: 'a button that was pressed',
    contentType: JSON_TYPE,
    body: JSON.stringify({
      update_id: 729_001_338,
      callback_query: {
        id: '2200001',
        from: ada,
        message: {
          message_id: 42,
          from: { id: 1, is_bot: true, first_name: 'Shop' },
          chat,
          date: 1,
          text: 'Which size?',
        },
        chat_instance: '-3',
        data: 'size:xl',
      },
    }),
    sourceRef: 'tg:hook:729001338',
    channelRef: 'tg:hook:5111222333',
    contactName: 'Ada Lovelace',
    contactEmail: null,
    messageType: 'callback_query',
    text: 'size:xl',
  },
  {
    title: 'an edited post of a channel',
    contentType: JSON_TYPE,
    body: JSON.stringify({
      update_id: 729_001_339,
      edited_channel_post: {
        message_id: 9,
        chat: { id: -100_500, title: 'News', type: 'channel' },
        date: 1,
        text: 'Open at 9',
      },
    }),
    sourceRef: 'tg:hook:729001339',
    channelRef: 'tg:hook:-100500',
    contactName: null,
    contactEmail: null,
    messageType: 'edited_channel_post',
    text: 'Open at 9',
  },
]
