// Slack: Events API (JSON), slash commands and interactivity (forms).

import type { BuiltInRecipe } from '../recipe.ts'

export const slack: BuiltInRecipe = {
  name: 'slack',
  version: '1',
  title: 'Slack app',
  bodies: ['json', 'form'],
  signature: {
    kind: 'hmac',
    algorithm: 'sha256',
    encoding: 'hex',
    signature: { in: ['{header:x-slack-signature}'], prefix: 'v0=' },
    timestamp: { in: ['{header:x-slack-request-timestamp}'], toleranceS: 300 },
    signs: ['v0:{timestamp}:{body}'],
    secret: 'text',
  },
  challenge: { kind: 'echo', when: '/type', equals: 'url_verification', echo: '/challenge' },
  // The trigger of a command or an interaction is used once; that of an interaction stands inside of its payload.
  sourceRef: ['slack:{/event_id}', 'slack:{form:trigger_id}', '{sha256}'],
  channelRef: [
    'slack:{/team_id}:{/event/channel}',
    'slack:{/team_id}:{/event/item/channel}',
    'slack:{form:team_id}:{form:channel_id}',
  ],
  batch: [],
  index: {
    contactName: ['{/event/user_profile/real_name}', '{/event/user}', '{form:user_name}', '{form:user_id}'],
    contactEmail: ['{/event/user/profile/email}'],
    messageType: ['{/event/type}', 'command{?form:command}', 'interaction{?form:payload}', '{/type}'],
    text: [
      '{/event/text}',
      '{form:command} {form:text}',
      '{form:command}',
      '{strings:/event/blocks|text}',
      '{form:payload}',
    ],
  },
  // Slack shows the answer to a command to the person who typed it.
  answer: { contentType: 'text/plain', body: '' },
  guide: {
    secret: { from: 'vendor', name: 'Signing secret' },
    steps: [
      'In the settings of the Slack app, copy the signing secret (Basic Information) into the hook.',
      'Under Event Subscriptions paste {url} as request URL. Slack calls the address at once.',
      'For slash commands and interactivity paste the same address.',
    ],
  },
}
