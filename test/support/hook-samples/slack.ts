// Samples of slack requests: shaped as the documentation of the sender shows, with data that is made up.

import { FORM_TYPE, formBody, type HookSample, JSON_TYPE, SHA256 } from './sample.ts'

const eventBody = (event: object): string =>
  JSON.stringify({
    token: 'made-up',
    team_id: 'T061EG9R6',
    api_app_id: 'A0PNCHHK2',
    event,
    type: 'event_callback',
    event_id: 'Ev08MFMKH6',
    event_time: 1_763_500_000,
    authorizations: [],
  })

export const slackSamples: readonly HookSample[] = [
  {
    title: 'a message in a channel',
    contentType: JSON_TYPE,
    body: eventBody({
      type: 'message',
      user: 'U061F7AUR',
      text: 'The lift is stuck',
      ts: '1763500000.000200',
      channel: 'C0LAN2Q65',
    }),
    sourceRef: 'slack:Ev08MFMKH6',
    channelRef: 'slack:T061EG9R6:C0LAN2Q65',
    contactName: 'U061F7AUR',
    contactEmail: null,
    messageType: 'message',
    text: 'The lift is stuck',
  },
  {
    title: 'a reaction',
    contentType: JSON_TYPE,
    body: eventBody({
      type: 'reaction_added',
      user: 'U061F7AUR',
      reaction: 'thumbsup',
      item: { type: 'message', channel: 'C0LAN2Q65', ts: '1763500000.000200' },
    }),
    sourceRef: 'slack:Ev08MFMKH6',
    channelRef: 'slack:T061EG9R6:C0LAN2Q65',
    contactName: 'U061F7AUR',
    contactEmail: null,
    messageType: 'reaction_added',
    text: null,
  },
  {
    title: 'a slash command',
    contentType: FORM_TYPE,
    body: formBody({
      token: 'made-up',
      team_id: 'T061EG9R6',
      channel_id: 'C0LAN2Q65',
      user_id: 'U061F7AUR',
      user_name: 'ada',
      command: '/ticket',
      text: 'lift & door, 3rd floor',
      trigger_id: '13345224609.738474920.8088',
    }),
    sourceRef: 'slack:13345224609.738474920.8088',
    channelRef: 'slack:T061EG9R6:C0LAN2Q65',
    contactName: 'ada',
    contactEmail: null,
    messageType: 'command',
    text: '/ticket lift & door, 3rd floor',
  },
  {
    title: 'an interaction, whose JSON is inside of a form',
    contentType: FORM_TYPE,
    body: formBody({ payload: '{"type":"block_actions","trigger_id":"12.34.ab"}' }),
    sourceRef: SHA256,
    channelRef: null,
    contactName: null,
    contactEmail: null,
    messageType: 'interaction',
    text: '{"type":"block_actions","trigger_id":"12.34.ab"}',
  },
]
