// Lists of tokens of another system: what is read, and what is refused without repeating it.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { MAX_LISTED_TOKENS, readTokenList } from '../../../src/auth/token-list-file.ts'

const digest = (n: number) => n.toString(16).padStart(64, 'a')
const SECRET = 'a-secret-token'

test('CSV and JSON lines are read the same, with quotes, CRLF, a byte order mark and blank lines', () => {
  const csv = `\uFEFFName,account,company,scope,sha256,expires\r
"Form, ""new""",7,42,cf,${digest(1)},2027-01-31T00:00:00Z\r
\r
,8,43,,${digest(2).toUpperCase()},`
  const json = `{"name":"Form, \\"new\\"","account":7,"company":"42","scope":"cf","sha256":"${digest(1)}","expires":"2027-01-31T00:00:00Z"}

{"account":8,"company":43,"scope":null,"sha256":"${digest(2)}"}
`
  const expected = [
    {
      label: 'Form, "new"',
      accountId: 7,
      companyId: 42,
      scope: 'cf',
      expiresAt: Date.UTC(2027, 0, 31),
      digest: digest(1),
      keyId: null,
    },
    { label: '', accountId: 8, companyId: 43, scope: '', expiresAt: null, digest: digest(2), keyId: null },
  ]
  for (const [text, lines] of [
    [csv, [2, 4]],
    [json, [1, 3]],
  ] as const) {
    const read = readTokenList(text)
    assert.deepEqual(
      read.map(({ line }) => line),
      lines,
    )
    assert.deepEqual(
      read.map(({ hash, line: _, ...rest }) => ({ ...rest, digest: Buffer.from(hash).toString('hex') })),
      expected,
    )
  }
  const [own] = readTokenList(`account,company,sha256,key_id\n1,1,${digest(3)},aBcDeFgHiJ\n`)
  assert.equal(own!.keyId, 'aBcDeFgHiJ')
})

test('what is wrong is named with its line, and no value is repeated', () => {
  const header = 'name,account,company,scope,sha256,expires,key_id'
  const line = (change: Record<string, string>) => {
    const fields = { name: 'n', account: '1', company: '1', scope: 'cf', sha256: digest(1), expires: '', key_id: '' }
    return `${header}\n${Object.values({ ...fields, ...change }).join(',')}\n`
  }
  assert.equal(readTokenList(line({})).length, 1, 'control')
  const wrong: [text: string, says: RegExp][] = [
    [line({ sha256: SECRET }), /^Line 2: sha256 is not 64 hexadecimal digits\.$/],
    [line({ sha256: '' }), /^Line 2: sha256 is missing/],
    [line({ account: '0' }), /account is not a whole number/],
    [line({ company: '1e3' }), /company is not a whole number/],
    [line({ scope: SECRET.toUpperCase() }), /scope takes/],
    [line({ expires: 'soon' }), /expires must be a time/],
    [line({ key_id: SECRET }), /key_id is not/],
    [line({ name: 'x'.repeat(201) }), /more than 200/],
    [`${line({})}n,1,1,cf,${digest(1)},,\n`, /^Line 3: its sha256 stands in an earlier line/],
    [`${line({})}n,1\n`, /^Line 3 has 2 cells, and the header 7/],
    [`token,account,company,sha256\n${SECRET},1,1,${digest(1)}\n`, /a field that is none of/],
    [`${header}\n"n,1`, /^Line 2 is not CSV/],
    [`{"account":1,"company":1,"sha256":"${digest(1)}","token":"${SECRET}"}`, /a field that is none of/],
    [`{"account":1}\n{"account`, /^Line 2 is not JSON|^Line 1/],
    ['', /is empty/],
    [SECRET, /^The first line is no header with account, company, sha256\.$/],
    [`{"name":"a\\u0000b","account":1,"company":1,"sha256":"${digest(1)}"}`, /^Line 1: name holds U\+0000/],
    [`{"name":"\\ud800","account":1,"company":1,"sha256":"${digest(1)}"}`, /^Line 1: name holds/],
    [`account,company,sha256\n${'1,1,x\n'.repeat(MAX_LISTED_TOKENS + 1)}`, /more than 100000/],
  ]
  for (const [text, says] of wrong) {
    assert.throws(
      () => readTokenList(text),
      ({ message }: Error) => says.test(message) && !message.toLowerCase().includes(SECRET),
      `${says}`,
    )
  }
})
