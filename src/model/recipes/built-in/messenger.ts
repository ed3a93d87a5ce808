// Messenger and Instagram: messages, postbacks, comments. One request may hold several of them; then it is a batch.

import type { BuiltInRecipe } from '../recipe.ts'
import { META_CHALLENGE, META_SIGNATURE, metaGuide } from './meta.ts'

const MESSAGING = '/entry/0/messaging/0'
const CHANGE = '/entry/0/changes/0'

export const messenger: BuiltInRecipe = {
  name: 'messenger',
  version: '1',
  title: 'Messenger and Instagram',
  bodies: ['json'],
  signature: META_SIGNATURE,
  challenge: META_CHALLENGE,
  sourceRef: [
    // A deletion has the id of the message that was deleted.
    `{/object}:{${MESSAGING}/message/mid}:deleted{?${MESSAGING}/message/is_deleted}`,
    `{/object}:{${MESSAGING}/message/mid}`,
    `{/object}:{${MESSAGING}/message_edit/mid}:edit-{${MESSAGING}/message_edit/num_edit}`,
    `{/object}:{${MESSAGING}/postback/mid}`,
    '{sha256}',
  ],
  channelRef: [
    // An echo goes from the page to the person.
    `{/object}:{/entry/0/id}:{${MESSAGING}/recipient/id}{?${MESSAGING}/message/is_echo}`,
    `{/object}:{/entry/0/id}:{${MESSAGING}/sender/id}`,
    `{/object}:{/entry/0/id}:{${CHANGE}/value/from/id}`,
  ],
  batch: ['/entry/1', '/entry/0/messaging/1', '/entry/0/changes/1', '/entry/0/standby/1'],
  index: {
    contactName: [`{${CHANGE}/value/from/username}`, `{${CHANGE}/value/from/name}`, `{${MESSAGING}/sender/id}`],
    contactEmail: [],
    messageType: [
      `text{?${MESSAGING}/message/text}`,
      `{${MESSAGING}/message/attachments/0/type}`,
      ...['message_edit', 'message', 'postback', 'reaction', 'read', 'delivery', 'referral', 'optin'].map(
        (part) => `${part}{?${MESSAGING}/${part}}`,
      ),
      `{${CHANGE}/field}`,
    ],
    text: [
      `{${MESSAGING}/message/text}`,
      `{${MESSAGING}/message_edit/text}`,
      `{${MESSAGING}/postback/title}`,
      `{${MESSAGING}/postback/payload}`,
      `{${MESSAGING}/reaction/emoji}`,
      `{${CHANGE}/value/text}`,
      `{${CHANGE}/value/message}`,
    ],
  },
  answer: null,
  guide: metaGuide('Messenger or Instagram', 'messages, messaging_postbacks and the other fields that you want'),
}
