// Samples of github requests: shaped as the documentation of the sender shows, with data that is made up.

import { FORM_TYPE, formBody, type HookSample, JSON_TYPE } from './sample.ts'

const repository = { id: 35_129_377, name: 'engine', full_name: 'lovelace/engine', private: false }
const sender = { login: 'ada', id: 1 }
const headers = (event: string, delivery: string) => ({ 'X-GitHub-Event': event, 'X-GitHub-Delivery': delivery })

export const githubSamples: readonly HookSample[] = [
  {
    title: 'a comment on an issue',
    contentType: JSON_TYPE,
    headers: headers('issue_comment', '72d3162e-cc78-11e3-81ab-4c9367dc0958'),
    body: JSON.stringify({
      action: 'created',
      issue: { number: 12, title: 'Carry is lost', body: 'See card 7' },
      comment: { id: 99, body: 'Fixed by turning the crank.' },
      repository,
      sender,
    }),
    sourceRef: 'github:72d3162e-cc78-11e3-81ab-4c9367dc0958',
    channelRef: 'github:lovelace/engine#12',
    contactName: 'ada',
    contactEmail: null,
    messageType: 'issue_comment.created',
    text: 'Fixed by turning the crank.',
  },
  {
    title: 'a pull request',
    contentType: JSON_TYPE,
    headers: headers('pull_request', '72d3162e-cc78-11e3-81ab-4c9367dc0959'),
    body: JSON.stringify({
      action: 'opened',
      number: 13,
      pull_request: { number: 13, title: 'Add a difference wheel', body: null },
      repository,
      sender,
    }),
    sourceRef: 'github:72d3162e-cc78-11e3-81ab-4c9367dc0959',
    channelRef: 'github:lovelace/engine#13',
    contactName: 'ada',
    contactEmail: null,
    messageType: 'pull_request.opened',
    text: 'Add a difference wheel',
  },
  {
    title: 'a push',
    contentType: JSON_TYPE,
    headers: headers('push', '72d3162e-cc78-11e3-81ab-4c9367dc0960'),
    body: JSON.stringify({
      ref: 'refs/heads/main',
      repository,
      pusher: { name: 'ada', email: 'ada@engine.test' },
      sender,
      commits: [{ id: 'c0ffee', message: 'Oil the gears' }],
      head_commit: { id: 'c0ffee', message: 'Oil the gears', author: { email: 'other@engine.test' } },
    }),
    sourceRef: 'github:72d3162e-cc78-11e3-81ab-4c9367dc0960',
    channelRef: 'github:lovelace/engine',
    contactName: 'ada',
    contactEmail: 'ada@engine.test',
    messageType: 'push',
    text: 'Oil the gears',
  },
  {
    title: 'a webhook that was left on the content type of forms',
    contentType: FORM_TYPE,
    headers: headers('ping', '72d3162e-cc78-11e3-81ab-4c9367dc0961'),
    body: formBody({ payload: '{"zen":"Keep it simple."}' }),
    sourceRef: 'github:72d3162e-cc78-11e3-81ab-4c9367dc0961',
    channelRef: null,
    contactName: null,
    contactEmail: null,
    messageType: null,
    text: '{"zen":"Keep it simple."}',
  },
]
