import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { drivers } from '../support/drivers.ts'
import { INTAKE_PATHS, idOf, postTo, rowsStoredDuring } from '../support/intake.ts'
import { exchange, rawRequest } from '../support/raw.ts'
import { sharedApp } from '../support/shared-app.ts'

const PAIR = '\u{1F600}'

for (const driver of drivers) {
  for (const path of INTAKE_PATHS) {
    describe(`the body of POST ${path} on ${driver.name}`, () => {
      const shared = sharedApp(driver)
      const post = (body: string | Uint8Array, headers: Record<string, string> = {}) =>
        postTo(shared.app, path, body, headers)
      /** With the Content-Type lines as they are given, or none. */
      const postAs = (lines: readonly string[]) => {
        const headers = [`Authorization: Bearer ${shared.app.token}`, ...lines]
        return exchange(shared.app.port, 'POST', path, rawRequest({ target: path, headers, body: '{}' }))
      }

      describe('its content type', () => {
        const ACCEPTED = [
          'application/json',
          'application/json; charset=utf-8',
          'application/json;charset=utf-8',
          'application/json; charset=UTF-8',
          'application/json; charset="utf-8"',
          'application/json; charset="UTF-8"',
          'application/json; Charset=utf-8',
          'application/json ; charset=utf-8',
          'application/json\t;\tcharset=utf-8',
          'application/json;   charset=utf-8  ',
          'application/json; charset=utf8',
          'Application/JSON',
          'APPLICATION/JSON; CHARSET=UTF-8',
          'application/json; version=1',
          'application/json; version=1; charset=utf-8',
          'application/json; charset=utf-8; profile="https://a.test/b"',
          'application/vnd.api+json',
          'application/cloudevents+json; charset=UTF-8',
          'text/plain',
          'text/plain;charset=UTF-8',
          'application/octet-stream',
          '',
        ]
        for (const value of ACCEPTED) {
          test(`200: ${JSON.stringify(value)}`, async () => {
            assert.equal((await postAs([`Content-Type: ${value}`])).status, 200)
          })
        }

        test('200: white space around the value belongs to HTTP, not to the value', async () => {
          assert.equal((await postAs(['Content-Type:   \t application/json \t '])).status, 200)
          assert.equal((await postAs(['content-type:application/json'])).status, 200)
        })

        const REFUSED = [
          'text/plain; charset=latin1',
          'text/html',
          'text/json',
          'application/x-www-form-urlencoded',
          'multipart/form-data; boundary=x',
          'application/json; charset=latin1',
          'application/json; charset=iso-8859-1',
          'application/json; charset=utf-16',
          'application/json; charset="utf-16"',
          'application/json; charset=',
          'application/json; charset=utf-8; charset=latin1',
          'application/json; charset=latin1; charset=utf-8',
          'application/json; charset=utf-8x',
          'application/jsonx',
          'application/json garbage',
          'application/json,text/plain',
          'application/json, application/json',
          'text/plain, application/json',
          'application/vnd.api+jsonx',
          'application/json+x',
          'application/ json',
          'application /json',
          'application/json/x',
          'json',
          '*/*',
          'application/*',
          '"application/json"',
          'xapplication/json',
          '\u00a0application/json',
          'application/json\u00a0',
          'application/json; charset',
          'application/json; =utf-8',
          'application/json; charset="utf-8',
        ]
        for (const value of REFUSED) {
          test(`415: ${JSON.stringify(value)}`, async () => {
            const answer = await postAs([`Content-Type: ${value}`])
            assert.equal(answer.status, 415)
            assert.equal(answer.json?.error, 'unsupported_media_type')
            assert.equal(answer.json?.retryable, false)
            assert.match(String(answer.json?.message), /Content-Type: application\/json/)
          })
        }

        test('200: none at all', async () => {
          assert.equal((await postAs([])).status, 200)
        })

        test('415: a form is not mended by another header, and the answer says what is', async () => {
          for (const type of ['application/x-www-form-urlencoded', 'multipart/form-data; boundary=x']) {
            const message = String((await postAs([`Content-Type: ${type}`])).json?.message)
            assert.match(message, /A form is not taken\. Make one JSON object of its fields/)
          }
        })

        test('400: a form that is not declared as one', async () => {
          for (const body of ['name=Ada&text=Hello', 'fields%5Ba%5D=1', '--x\r\nContent-Disposition: form-data']) {
            for (const type of ['text/plain', 'application/json']) {
              const answer = await post(body, { 'Content-Type': type })
              assert.deepEqual([answer.status, answer.json?.error], [400, 'invalid_json'])
              assert.match(String(answer.json?.message), /^The body is a form, not JSON\. Make one JSON object/)
            }
          }
          assert.doesNotMatch(String((await post('{"a"=1}')).json?.message), /form/)
        })

        test('a message of another type is stored as it came, and is the same message under any', async () => {
          const { app } = shared
          const body = JSON.stringify({ source_ref: `typed:${path}`, a: 1 })
          const first = await post(body, { 'Content-Type': 'text/plain' })
          const again = await post(body, { 'Content-Type': 'application/vnd.a+json' })
          assert.deepEqual(again.json, { ok: true, id: idOf(first), duplicate: true })
          assert.equal((await app.store.events.find(idOf(first)))?.contentType, 'text/plain')
        })

        test('415: two of them, equal or not', async () => {
          for (const second of ['application/json', 'text/plain']) {
            const answer = await postAs(['Content-Type: application/json', `Content-Type: ${second}`])
            assert.equal(answer.status, 415, second)
          }
        })

        test('400: a folded header, and a space before the colon or the name', async () => {
          for (const lines of [
            ['Content-Type: application/json', ' ; charset=latin1'],
            ['Content-Type: text/plain', '\tapplication/json'],
            ['Content-Type : application/json'],
            [' Content-Type: application/json'],
          ]) {
            const answer = await postAs(lines)
            assert.equal(answer.status, 400, lines.join('\\r\\n'))
            assert.equal(answer.json?.error, 'invalid_request')
          }
        })
      })

      describe('its JSON', () => {
        const REFUSED: Record<string, string | Uint8Array> = {
          'an empty body': '',
          'white space alone': ' \r\n\t ',
          'a BOM alone': '\ufeff',
          'two BOMs': '\ufeff\ufeff{}',
          'a BOM behind white space': ' \ufeff{}',
          'text that is not JSON': 'hello',
          'a form': 'a=1&b=2',
          'an object that does not end': '{"a":1',
          'two objects': '{}{}',
          'something behind the object': '{} x',
          'a trailing comma': '{"a":1,}',
          'single quotes': "{'a':1}",
          'a comment': '{/* a */}',
          'a bare control character in a string': '{"a":"\u0001"}',
          'a bare U+0000': '{"a":"\0"}',
          'a bad escape': '{"a":"\\x41"}',
          'a number with a leading zero': '{"a":01}',
          NaN: '{"a":NaN}',
          'an array': '[{"source_ref":"a"}]',
          'a string': '"text"',
          'a number': '42',
          true: 'true',
          null: 'null',
          'a lone continuation byte': Buffer.from([0x7b, 0x22, 0x61, 0x22, 0x3a, 0x22, 0x80, 0x22, 0x7d]),
          'latin1 text': Buffer.from('{"a":"caf\u00e9"}', 'latin1'),
          'an overlong slash': Buffer.from([...Buffer.from('{"a":"'), 0xc0, 0xaf, ...Buffer.from('"}')]),
          'an overlong U+0000': Buffer.from([...Buffer.from('{"a":"'), 0xc0, 0x80, ...Buffer.from('"}')]),
          'a surrogate in UTF-8': Buffer.from([...Buffer.from('{"a":"'), 0xed, 0xa0, 0x80, ...Buffer.from('"}')]),
          'a code point past U+10FFFF': Buffer.from([
            ...Buffer.from('{"a":"'),
            0xf4,
            0x90,
            0x80,
            0x80,
            ...Buffer.from('"}'),
          ]),
          'a sequence cut short': Buffer.from([...Buffer.from('{"a":"'), 0xe2, 0x82]),
          'UTF-16': Buffer.from('\ufeff{"a":1}', 'utf16le'),
        }
        for (const [name, body] of Object.entries(REFUSED)) {
          test(`400 invalid_json: ${name}`, async () => {
            const answer = await post(body)
            assert.equal(answer.status, 400)
            assert.equal(answer.json?.error, 'invalid_json')
            assert.equal(answer.json?.retryable, false)
          })
        }

        test('400 invalid_json: the sentence does not repeat what was sent', async () => {
          const answer = await post('{"password":"hunter2" oops')
          assert.doesNotMatch(answer.text, /hunter2|password|oops/)
        })

        test('nothing is stored for a refused body', async () => {
          const rows = await rowsStoredDuring(shared.app, async () => {
            for (const body of Object.values(REFUSED)) await post(body)
            await post('{"source_ref":1.5}')
          })
          assert.deepEqual(rows, [])
        })

        test('200: an object, with or without anything in it', async () => {
          for (const body of ['{}', ' {} ', '\r\n{"a":null}\n', '\ufeff{"a":1}', '{"":""}']) {
            assert.equal((await post(body)).status, 200, body)
          }
        })

        test('200: keys that mean something to JavaScript are data', async () => {
          const bodies = [
            '{"__proto__":{"source_ref":"from the prototype","polluted":true}}',
            '{"constructor":{"prototype":{"polluted":true}}}',
            '{"toString":1,"hasOwnProperty":2,"valueOf":null,"then":"x"}',
            '{"contact":{"__proto__":{"name":"N","polluted":true},"constructor":1}}',
          ]
          for (const body of bodies) {
            const answer = await post(body)
            assert.equal(answer.status, 200, body)
            const event = await shared.app.store.events.find(idOf(answer))
            assert.equal(event?.sourceRef, null)
            assert.equal(Buffer.from((await shared.app.store.events.payload(idOf(answer)))!).toString(), body)
          }
          assert.equal(({} as Record<string, unknown>).polluted, undefined)
        })
      })

      describe('its source_ref and channel_ref', () => {
        const refsOf = async (body: string) => {
          const answer = await post(body)
          assert.equal(answer.status, 200, `${body.slice(0, 60)} ${answer.text}`)
          const event = await shared.app.store.events.find(idOf(answer))
          return [event?.sourceRef, event?.channelRef]
        }

        test('200: both are kept as they were decoded', async () => {
          assert.deepEqual(await refsOf('{"source_ref":"cf:12:9001","channel_ref":"a.test/contact"}'), [
            'cf:12:9001',
            'a.test/contact',
          ])
          assert.deepEqual(await refsOf('{"source_ref":" a\\u0062\\n ","channel_ref":"\\ud83d\\ude00"}'), [
            ' ab\n ',
            PAIR,
          ])
          assert.deepEqual(await refsOf('{"source\\u005fref":"escaped key"}'), ['escaped key', null])
        })

        test('200: null, "" and white space alone count as absent', async () => {
          for (const value of ['null', '""', '" "', '"\\t\\r\\n"', '"\\u00a0\\u2003\\ufeff"', `"${' '.repeat(600)}"`]) {
            assert.deepEqual(await refsOf(`{"source_ref":${value},"channel_ref":${value}}`), [null, null], value)
          }
        })

        test('200: of a repeated key the last counts', async () => {
          assert.deepEqual(await refsOf('{"source_ref":"first","source_ref":"last"}'), ['last', null])
          assert.deepEqual(await refsOf('{"source_ref":1.5,"source_ref":"good now"}'), ['good now', null])
          assert.deepEqual(await refsOf('{"source_ref":"gone","source_ref":null}'), [null, null])
        })

        test('200: only those at the top count', async () => {
          assert.deepEqual(await refsOf('{"meta":{"source_ref":1,"channel_ref":[]},"Source_Ref":2}'), [null, null])
        })

        test('200: an integer counts as its digits as sent', async () => {
          assert.deepEqual(await refsOf('{"source_ref":81234567890123456789,"channel_ref":-1001234567890}'), [
            '81234567890123456789',
            '-1001234567890',
          ])
          const ref = 7_000_000 + Math.floor(Math.random() * 1_000_000)
          const first = await post(`{"source_ref":${ref}}`)
          const text = await post(`{"source_ref":"${ref}"}`)
          const again = await post(`{"source_ref":${ref}}`)
          assert.deepEqual(text.json, { ok: true, id: idOf(first), duplicate: true, conflict: true })
          assert.deepEqual(again.json, { ok: true, id: idOf(first), duplicate: true })
        })

        test('200: 512 UTF-16 units, of which an emoji takes two', async () => {
          const longest = 'x'.repeat(512)
          assert.deepEqual(await refsOf(JSON.stringify({ source_ref: longest, channel_ref: longest })), [
            longest,
            longest,
          ])
          const pairs = PAIR.repeat(256)
          assert.deepEqual(await refsOf(JSON.stringify({ source_ref: pairs })), [pairs, null])
          const wide = '\u20ac'.repeat(512)
          assert.deepEqual(await refsOf(JSON.stringify({ source_ref: wide })), [wide, null])
        })

        const UNUSABLE: Record<string, readonly [string, string]> = {
          'a fraction': ['1.5', 'not_an_integer'],
          'an integer with a point': ['1.0', 'not_an_integer'],
          'an exponent': ['1e3', 'not_an_integer'],
          'minus zero': ['-0', 'not_an_integer'],
          '513 digits': ['1'.repeat(513), 'too_long'],
          true: ['true', 'not_a_string'],
          false: ['false', 'not_a_string'],
          'an array': ['[]', 'not_a_string'],
          'an array of a string': ['["a"]', 'not_a_string'],
          'an object': ['{}', 'not_a_string'],
          '513 units': [`"${'x'.repeat(513)}"`, 'too_long'],
          '257 emoji': [`"${PAIR.repeat(257)}"`, 'too_long'],
          '256 emoji and a letter': [`"${PAIR.repeat(256)}x"`, 'too_long'],
          'U+0000': ['"a\\u0000b"', 'invalid_character'],
          'U+0000 alone': ['"\\u0000"', 'invalid_character'],
          'a lone high surrogate': ['"a\\ud800"', 'invalid_character'],
          'a lone low surrogate': ['"\\udc00a"', 'invalid_character'],
          'surrogates the wrong way round': ['"\\ude00\\ud83d"', 'invalid_character'],
        }
        for (const [name, [value, code]] of Object.entries(UNUSABLE)) {
          test(`422: ${name}, in either and in both at once`, async () => {
            for (const fields of [['source_ref'], ['channel_ref'], ['source_ref', 'channel_ref']]) {
              const answer = await post(`{${fields.map((field) => `"${field}":${value}`).join(',')}}`)
              assert.equal(answer.status, 422)
              assert.equal(answer.json?.error, 'invalid_payload')
              assert.equal(answer.json?.retryable, false)
              const found = answer.json?.fields as { path: string; code: string }[]
              assert.deepEqual(
                found.map((field) => [field.path, field.code]),
                fields.map((field) => [`/${field}`, code]),
              )
            }
          })
        }

        test('422: each field is told for its own reason', async () => {
          const answer = await post(`{"channel_ref":["${'y'.repeat(9)}"],"source_ref":"${'x'.repeat(513)}"}`)
          const found = answer.json?.fields as { path: string; code: string }[]
          assert.deepEqual(
            found.map((field) => [field.path, field.code]),
            [
              ['/source_ref', 'too_long'],
              ['/channel_ref', 'not_a_string'],
            ],
          )
          assert.doesNotMatch(answer.text, /xxx|yyy/, 'what was sent is not repeated')
        })

        test('200: U+0000 and lone surrogates anywhere else', async () => {
          const body = '{"message":{"text":"\\u0000 \\ud800 \\udc00"},"contact":{"name":"\\u0000"},"\\u0000":"\\udfff"}'
          assert.deepEqual(await refsOf(body), [null, null])
        })
      })

      describe('fields of another type than the documented one', () => {
        const warningsOf = async (body: string) => {
          const { app } = shared
          const answer = await post(body)
          assert.equal(answer.status, 200, body)
          await app.indexed()
          const event = await app.store.events.find(idOf(answer))
          const entry = await app.store.events.indexEntry(event!)
          assert.equal(entry?.unindexed, null)
          return entry?.warnings.map(({ path: at, expected, got }) => `${at} ${expected} ${got}`)
        }

        test('are accepted, and the event carries a warning for each', async () => {
          assert.deepEqual(await warningsOf('{"contact":[]}'), ['/contact object array'])
          assert.deepEqual(await warningsOf('{"meta":{"form_id":"12"}}'), ['/meta/form_id integer string'])
          assert.deepEqual(await warningsOf('{"message":"x"}'), ['/message object string'])
          assert.deepEqual(
            (await warningsOf('{"contact":{"name":1,"email":[]},"message":{"type":false,"text":{}},"meta":7}'))?.sort(),
            [
              '/contact/email string array',
              '/contact/name string number',
              '/message/text string object',
              '/message/type string boolean',
              '/meta object number',
            ],
          )
          assert.deepEqual(await warningsOf('{"meta":{"form_id":1.5,"page_url":1}}'), [
            '/meta/form_id integer number',
            '/meta/page_url string number',
          ])
        })

        test('are told in the answer, which is otherwise the same', async () => {
          const body = '{"contact":{"email":[]},"meta":{"form_id":"12"},"sourceRef":"a","Channel-Ref":"b"}'
          const answer = await post(body)
          assert.deepEqual(answer.json, { ok: true, id: idOf(answer) })
          assert.equal(
            answer.headers['intray-warnings'],
            [
              'unexpected-type;field="contact.email";expected="string";got="array"',
              'unexpected-type;field="meta.form_id";expected="integer";got="string"',
              'look-alike;field="sourceRef";expected="source_ref"',
              'look-alike;field="Channel-Ref";expected="channel_ref"',
            ].join(', '),
          )
          const line = shared.app.log.find((one) => one.event_id === idOf(answer))
          assert.equal(line?.warnings, answer.headers['intray-warnings'])
          assert.equal((await post('{"contact":{"email":"a"}}')).headers['intray-warnings'], undefined)
          assert.equal((await post('{"contact":[],"source_ref":true}')).headers['intray-warnings'], undefined)
        })

        test('include names that look like those of the references', async () => {
          assert.deepEqual(await warningsOf('{"SourceRef":"a"}'), ['/SourceRef source_ref SourceRef'])
        })

        test('a body that takes many turns to validate is stored like any other', async () => {
          const deep = `${'['.repeat(200_000)}${']'.repeat(200_000)}`
          const body = `{"sourceRef":1,"contact":${deep},"Channel-Ref":2}`
          assert.deepEqual(await warningsOf(body), ['/contact object array', '/sourceRef source_ref sourceRef'])
          // Intake reads all of it, the index its beginning.
          assert.match(String((await post(body)).headers['intray-warnings']), /field="Channel-Ref"/)
        })

        test('carry no warning where they are as documented, absent or null', async () => {
          const bodies = [
            '{}',
            '{"contact":null,"message":null,"meta":null}',
            '{"contact":{"name":"N","email":"e@a.test"},"message":{"type":"text","text":"t"},"meta":{"form_id":12,"page_url":"https://a.test"}}',
            '{"message":{"type":"anything at all"},"meta":{"free":[1,{}]},"contact":{}}',
            '{"contact":{"name":null},"form_id":"not the one of meta"}',
          ]
          for (const body of bodies) assert.deepEqual(await warningsOf(body), [], body)
        })
      })
    })
  }
}
