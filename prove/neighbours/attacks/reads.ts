// Reads that cost much: searches, filters, deep pages, large conversations, large payloads, the console's views.

import type { AttackClient, Attack } from '../attack.ts'

const EVENTS = '/v1/inbox/events'

/** The same paths in turn, each as soon as the one before is answered. */
const reading = (paths: (client: AttackClient) => readonly string[]) => (client: AttackClient) => {
  const requests = paths(client).map((path) => client.request({ path }))
  return () => client.repeat((n) => requests[n % requests.length]!)
}

export const oneLetterWords: Attack = {
  name: 'one-letter-words',
  about: 'searches for 15 and for 8 words of one letter',
  by: 'processor',
  connections: 64,
  isControl: true,
  prepare: reading(() => ['a+b+c+d+e+f+g+h+i+k+l+m+n+o+p', 'a+b+c+d+e+f+g+h'].map((q) => `${EVENTS}?q=${q}`)),
}

export const fewLetterWords: Attack = {
  name: 'few-letter-words',
  about: 'searches for 8 words of two letters that no event has together',
  by: 'processor',
  connections: 64,
  prepare: reading(() => ['ab+cd+ef+gh+ij+kl+mn+op', 'qa+wb+ec+rd+te+zf+ug+ih'].map((q) => `${EVENTS}?q=${q}`)),
}

export const emptyFilters: Attack = {
  name: 'empty-filters',
  about: 'lists with filters that match nothing',
  by: 'processor',
  connections: 64,
  isControl: true,
  prepare: reading(() =>
    [
      'message_type=none',
      'state=pending&message_type=none',
      'state=dead&scope=none',
      'key_id=none',
      'kind=revision',
    ].map((filter) => `${EVENTS}?${filter}`),
  ),
}

export const longLists: Attack = {
  name: 'long-lists',
  about: 'lists of 200 events and of 200 conversations',
  by: 'processor',
  connections: 64,
  prepare: reading(() => [`${EVENTS}?limit=200`, '/v1/inbox/conversations?limit=200']),
}

export const hugeConversation: Attack = {
  name: 'huge-conversation',
  about: 'a conversation of 5,000 events, and all its events',
  by: 'processor',
  connections: 64,
  prepare: reading(({ target: { conversationId } }) => [
    `/v1/inbox/conversations/${conversationId}/events?limit=200`,
    `/v1/inbox/conversations/${conversationId}`,
    `${EVENTS}?channel_ref=huge&limit=200&state=pending`,
  ]),
}

export const deepPages: Attack = {
  name: 'deep-pages',
  about: 'all pages of a filtered list, one after the other',
  by: 'processor',
  connections: 32,
  prepare: (client) => async () => {
    const first = `${EVENTS}?limit=200&state=pending`
    let path = first
    let wire = await client.open()
    for (;;) {
      const { body } = await client.ask(wire, client.request({ path }), true)
      const next = /"next":"([^"]+)"/.exec(body ?? '')?.[1]
      path = next === undefined ? first : `${first}&cursor=${encodeURIComponent(next)}`
      if (!wire.isOpen) wire = await client.open()
    }
  },
}

export const largePayloads: Attack = {
  name: 'large-payloads',
  about: 'a payload of 900 kB asked for 200 times on a connection, never read',
  by: 'processor',
  connections: 20,
  prepare: (client) => {
    const request = client.request({ path: `${EVENTS}/${client.target.largeEventId}/payload` })
    return () => client.flood(request, 200, 2000)
  },
}

export const largeDetails: Attack = {
  name: 'large-details',
  about: 'the details of an event with a payload of 900 kB',
  by: 'processor',
  connections: 64,
  prepare: reading(({ target: { largeEventId } }) => [`${EVENTS}/${largeEventId}`]),
}

export const consoleViews: Attack = {
  name: 'console-views',
  about: 'the overview, refusals, tokens, tenants and audit log of the console',
  by: 'operator',
  connections: 64,
  prepare: reading(() => [
    '/v1/console/overview',
    '/v1/inbox/refusals?limit=200',
    '/v1/console/tokens',
    '/v1/console/tenants',
    '/v1/console/session',
  ]),
}
