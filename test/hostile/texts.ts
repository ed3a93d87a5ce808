// Texts that are dangerous somewhere: to SQL, to paths, to headers, to terminals, to pages, to whoever reads from right to
// left. Here each is a text like any other: stored as it is, found by itself, and never anything else.

const SQL = [
  ...[
    "' or 1=1 --",
    "'); drop table events; --",
    '" or ""="',
    '$1',
    '?',
    ':a',
    '%',
    '_',
    '%%',
    '\\',
    "\\'",
    '`',
    '$$',
    "E'\\x00'",
  ],
  ...[
    '1; select pg_sleep(60)',
    "' union select payload from events --",
    "x' escape '%",
    '%_\\%',
    '\u02bc or 1=1',
    "'||(select 1)||'",
  ],
]
const PATHS = [
  ...[
    '../../../../etc/passwd',
    '..\\..\\..\\windows',
    '/dev/zero',
    'file:///etc/passwd',
    'C:\\con',
    '~root',
    '%2e%2e%2f',
    '....//',
    '.',
    '..',
  ],
]
const LINES = [
  ...[
    'a\r\nX-Injected: 1',
    '\r\n\r\nHTTP/1.1 200 OK\r\nX-Injected: 1\r\n\r\n',
    'a\nb',
    'a\rb',
    '%0d%0aX-Injected:1',
    'a\u0085b',
    'a\u2028b\u2029',
  ],
  ...['data: x\n\nid: 999999\n\n', 'a\vb\fc'],
]
const SHOWN = [
  ...[
    '\u202egnp.exe',
    '\u2066a\u2069',
    'a\u200bb',
    'a\u200db',
    '\ufeffa',
    'a\u00adb',
    'Z\u0351\u036b\u0343a',
    '\u{1f468}\u200d\u{1f469}\u200d\u{1f467}',
  ],
  ...[
    '\ufdfa',
    '\u0130\u0131',
    'stra\u00dfe',
    'e\u0301',
    '\u00e9',
    '\uffff',
    '\u{10ffff}',
    '\ufffd',
    '\u1e9e',
    '\x1b[31mred\x1b]0;x\x07',
    '\x08\x7f',
  ],
]
const MEANT = [
  ...[
    '<script>alert(1)</script>',
    '"><img src=x onerror=alert(1)>',
    '{{7*7}}',
    '$\u007bjndi:ldap://a.test}',
    "=cmd|' /C calc'!A0",
    'javascript:alert(1)',
  ],
  ...[
    '%s%n%x',
    '%00',
    '$(id)',
    '`id`',
    '; rm -rf /',
    '| cat',
    'null',
    'undefined',
    'NaN',
    '__proto__',
    'constructor',
    'true',
    '0',
    '-1',
    '1e309',
    '[]',
    '{}',
  ],
]

/** Texts that a ref and a filter may be. */
export const TEXTS: readonly string[] = [
  ...SQL,
  ...PATHS,
  ...LINES,
  ...SHOWN,
  ...MEANT,
  'x'.repeat(512),
  '\u{1f600}'.repeat(256),
]

/** Texts that neither may be. */
export const UNUSABLE: readonly string[] = [
  '\0',
  'a\0b',
  "'\0; --",
  '\0'.repeat(600),
  'x'.repeat(513),
  '\u{1f600}'.repeat(256).concat('x'),
]

/** The same with half a character, which only JSON can carry. */
export const LONE: readonly string[] = ['\ud800', 'a\udc00', '\udc00\ud800']
