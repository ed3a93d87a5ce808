// Addresses: those there are, in every spelling, and those there are not. With a table of routes of its own, so that the
// prediction does not depend on the one it checks.

/** Who may call: everyone, every token, senders, processors, those who erase. */
export type Guard = 'public' | 'token' | 'sender' | 'processor' | 'admin'

export interface Door {
  readonly method: 'GET' | 'POST' | 'DELETE'
  readonly guard: Guard
  /** What a good call is answered; `intake` and `command` read a body first. */
  readonly result: 200 | 404 | 'intake' | 'command'
}

export interface TargetPart {
  readonly name: string
  readonly text: string
  /** Null: there is nothing. `malformed`: 400. `broken`: not even a target, 400 and closed. */
  readonly doors: readonly Door[] | null | 'malformed' | 'broken' | 'server'
}

const door = (method: Door['method'], guard: Guard, result: Door['result'] = 200): Door => ({ method, guard, result })

const DOORS: Record<string, readonly Door[]> = {
  '/v1/inbox/events': [door('POST', 'sender', 'intake'), door('GET', 'processor')],
  '/api/inbox': [door('POST', 'sender', 'intake')],
  '/api/ping': [door('GET', 'token')],
  '/api/inbox-test': [door('GET', 'token')],
  '/v1/inbox/conversations': [door('GET', 'processor')],
  '/v1/inbox/refusals': [door('GET', 'processor')],
  '/v1/inbox/requeue': [door('POST', 'processor', 'command')],
  '/v1/inbox/subscriptions/none': [door('DELETE', 'processor', 404)],
  '/v1/inbox/events/999999999999999': [door('GET', 'processor', 404), door('DELETE', 'admin', 404)],
  '/livez': [door('GET', 'public')],
  '/readyz': [door('GET', 'public')],
}

/** Ids that are none are unknown like any other, whatever they hold. */
const BAD_IDS = [
  ...[
    '0',
    '-1',
    '01',
    '1e0',
    '1.0',
    '%31%00',
    '1%20',
    '1%0d%0aX-Injected:%201',
    '1%2fpayload',
    '1%2Fpayload',
    '..%2f..%2fetc%2fpasswd',
  ],
  ...[
    "1'%20or%20'1'='1",
    '1;drop%20table%20events',
    '%d9%a3',
    '%e2%80%ae1',
    '1,2',
    '__proto__',
    '9'.repeat(16),
    '9'.repeat(400),
  ],
  ...['$(id)', '%7b%7b1%7d%7d', '1%3fx', '%23', '%25', 'null', '..', '..;', '1\\2'],
]

const UNKNOWN = [
  ...[
    '//',
    '/v1',
    '/nowhere',
    '/V1/inbox/events',
    '/v1/inbox/event',
    '/v1/inbox/eventsx',
    '//v1/inbox/events',
    '/v1//inbox/events',
  ],
  ...[
    '/v1/inbox/events//',
    '/v1/inbox/../inbox/events',
    '/v1/inbox/./events',
    '/v1/inbox/events;a=b',
    '/v1/inbox/events%00',
  ],
  ...[
    '/v1%2finbox%2fevents',
    '/v1/inbox%2Fevents',
    '/v1/inbox/events%2f',
    '/v1/inbox/events%20',
    '/v1/inbox/events%0d%0aX-Injected:%201',
  ],
  ...[
    '/..%2f..%2fetc/passwd',
    '/%2e%2e/%2e%2e/etc/passwd',
    '/v1\\inbox\\events',
    'ftp://intray.test/api/ping',
    '/api/ping/x',
  ],
]

const MALFORMED = [
  ...['/v1/inbox/events%zz', '/nowhere%', '/%', '/api/ping%f0%9f', '/%c0%af', '/v1/inbox/events/%ff', '/api/%u0070ing'],
  ...['http://admin@intray.test/api/ping', 'http:///api/ping', 'https://a:b/api/ping', 'http://a,b/api/ping'],
]

const BROKEN = ['v1/inbox/events', '?x', 'http:/api/ping', '@', '.', 'api/ping HTTP/1.1 GET']

/** The same address in other letters. A query is ignored where the interface of old has it so. */
function spellings(path: string, ignoresQuery: boolean): string[] {
  const encoded = path.replace(/[a-z](?=[^/]*$)/, (letter) => `%${letter.charCodeAt(0).toString(16)}`)
  const query = ignoresQuery
    ? ['?a=b', "?a=%00'%0d%0a", '?%', '?a=%zz&a=b', '/?x'].map((text) => path + text)
    : [`${path}?`]
  return [
    path,
    `${path}/`,
    encoded,
    `http://intray.test${path}`,
    `HTTPS://[::1]:80${path}/`,
    `http://other.test${path}?`,
    ...query,
  ]
}

/** Every address once, as it is written. */
export const PLACES: readonly TargetPart[] = Object.entries(DOORS).map(([text, doors]) => ({ name: text, text, doors }))

export const TARGETS: readonly TargetPart[] = [
  ...Object.entries(DOORS).flatMap(([path, doors]) => {
    const ignoresQuery = doors.every(({ guard, result }) => guard !== 'processor' && result !== 404)
    return spellings(path, ignoresQuery).map((text) => ({ name: text, text, doors }))
  }),
  ...BAD_IDS.map((id) => ({
    name: `the event ${id.slice(0, 40)}`,
    text: `/v1/inbox/events/${id}`,
    doors: [door('GET', 'processor', 404), door('DELETE', 'admin', 404)],
  })),
  ...['/', '/?a=b', 'http://intray.test', 'http://intray.test/'].map((text) => ({
    name: text,
    text,
    doors: [door('GET', 'public')],
  })),
  ...UNKNOWN.map((text) => ({ name: text, text, doors: null })),
  ...MALFORMED.map((text) => ({ name: text, text, doors: 'malformed' as const })),
  ...BROKEN.map((text) => ({ name: text, text, doors: 'broken' as const })),
  { name: '*', text: '*', doors: 'server' },
]

export const METHODS = [
  'GET',
  'HEAD',
  'POST',
  'PUT',
  'PATCH',
  'DELETE',
  'OPTIONS',
  'TRACE',
  'PROPFIND',
  'QUERY',
  'M-SEARCH',
] as const
