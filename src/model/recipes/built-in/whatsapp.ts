// WhatsApp Cloud API: messages and their status. One request may hold several of them; then it is a batch.

import type { BuiltInRecipe } from '../recipe.ts'
import { META_CHALLENGE, META_SIGNATURE, metaGuide } from './meta.ts'

const VALUE = '/entry/0/changes/0/value'
const MESSAGE = `${VALUE}/messages/0`
const STATUS = `${VALUE}/statuses/0`
const NUMBER = `${VALUE}/metadata/phone_number_id`

export const whatsapp: BuiltInRecipe = {
  name: 'whatsapp',
  version: '1',
  title: 'WhatsApp Cloud API',
  bodies: ['json'],
  signature: META_SIGNATURE,
  challenge: META_CHALLENGE,
  sourceRef: [`wa:{${MESSAGE}/id}`, `wa:{${STATUS}/id}:{${STATUS}/status}`, '{sha256}'],
  channelRef: [`wa:{${NUMBER}}:{${MESSAGE}/from}`, `wa:{${NUMBER}}:{${STATUS}/recipient_id}`],
  batch: ['/entry/1', '/entry/0/changes/1', `${VALUE}/messages/1`, `${VALUE}/statuses/1`],
  index: {
    contactName: [`{${VALUE}/contacts/0/profile/name}`, `{${MESSAGE}/from}`, `{${STATUS}/recipient_id}`],
    contactEmail: [],
    messageType: [`{${MESSAGE}/type}`, `status.{${STATUS}/status}`, '{/entry/0/changes/0/field}'],
    text: [
      ...['text/body', 'button/text', 'interactive/button_reply/title', 'interactive/list_reply/title'],
      ...['image/caption', 'video/caption', 'document/caption', 'document/filename', 'reaction/emoji'],
      ...['location/name', 'system/body'],
    ].map((part) => `{${MESSAGE}/${part}}`),
  },
  answer: null,
  guide: metaGuide('WhatsApp', 'the field messages'),
}
