// The sentences in answers, met as a new user meets them: each names the mistake and what to do about it, and none
// repeats a secret or what was sent.

import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { drivers } from '../support/drivers.ts'
import { jsonHeaders } from '../support/intake.ts'
import { sharedApp } from '../support/shared-app.ts'

const BEARER = /Authorization: Bearer <API token>/

describe('the message of an answer', () => {
  const shared = sharedApp(drivers[0]!)
  const restricted = sharedApp(drivers[0]!, { settings: { intakeScopes: 'cf,bot' } })
  const single = sharedApp(drivers[0]!, { settings: { intakeScopes: 'cf' } })

  const post = (body: string, path = '/v1/inbox/events') =>
    shared.app.send({ method: 'POST', path, headers: jsonHeaders(shared.app.token), body })

  const command = async (path: string, body: string) => {
    const token = await shared.app.createToken({ scope: 'processor' })
    return shared.app.send({ method: 'POST', path, headers: jsonHeaders(token), body })
  }

  test('422: is the sentence of the first field, with its path', async () => {
    const long = await post(`{"source_ref":"${'x'.repeat(513)}"}`)
    assert.equal(long.status, 422)
    assert.match(String(long.json?.message), /^`source_ref` is longer than 512 characters \(\/source_ref\)\./)
    assert.deepEqual(long.json?.fields, [
      {
        path: '/source_ref',
        code: 'too_long',
        message: '`source_ref` is longer than 512 characters. Shorten it, or send a hash of it.',
      },
    ])
    const both = await post('{"source_ref":true,"channel_ref":"a\\u0000"}')
    assert.equal(
      both.json?.message,
      '`source_ref` is neither a string nor an integer (/source_ref). Send it in quotes. Another problem is listed in fields.',
    )
    const found = both.json?.fields as { path: string }[]
    assert.deepEqual(
      found.map(({ path }) => path),
      ['/source_ref', '/channel_ref'],
    )
  })

  test('422: of a command says which field, and which there are', async () => {
    const high = await command('/v1/inbox/claims', '{"limit":0}')
    assert.equal(high.status, 422)
    assert.match(String(high.json?.message), /^`limit` must be a whole number from 1 to \d+ \(\/limit\)\.$/)
    const unknown = await command('/v1/inbox/claims', '{"lease":30,"lmit":1}')
    assert.match(String(unknown.json?.message), /^This field is not known \(\/lease\)\. Use only /)
    assert.match(String(unknown.json?.message), /lease_s/)
    const nested = await command('/v1/inbox/claims/ack', '{"events":[{"id":1,"lease_id":""}]}')
    assert.match(String(nested.json?.message), /\(\/events\/0\/lease_id\)/)
  })

  test('422: does not repeat a token that stands where a name should', async () => {
    const { token } = shared.app
    const answer = await command('/v1/inbox/claims', JSON.stringify({ [token]: 1, [`x${token.slice(5)}`]: 2 }))
    assert.equal(answer.status, 422)
    assert.ok(!answer.text.includes(token.slice(-36)), answer.text)
  })

  test('401: a token without the word Bearer, with another scheme, and the word alone', async () => {
    const { app } = shared
    const messageFor = async (authorization: string) => {
      const answer = await app.send({ path: '/api/ping', headers: { Authorization: authorization } })
      assert.deepEqual([answer.status, answer.json?.error], [401, 'missing_token'])
      assert.ok(!answer.text.includes(app.token), 'the token is not repeated')
      return String(answer.json?.message)
    }
    for (const value of [app.token, `Token ${app.token}`, `Bearer:${app.token}`, 'Basic eDp5']) {
      const message = await messageFor(value)
      assert.match(message, /^The Authorization header does not begin with "Bearer "\./)
      assert.match(message, BEARER)
    }
    assert.match(await messageFor('Bearer'), /^The Authorization header has no token after "Bearer"\./)
    const without = await app.send({ path: '/api/ping' })
    assert.match(String(without.json?.message), /^The request has no token\./)
  })

  test('401: a token in the query of an address that takes none is named as such', async () => {
    const { app } = shared
    const headers = { 'Content-Type': 'application/json' }
    for (const [method, path] of [
      ['POST', '/v1/inbox/events'],
      ['POST', '/api/inbox'],
      ['GET', '/api/ping'],
      ['GET', '/v1/inbox/events'],
    ] as const) {
      const body = method === 'POST' ? { body: '{}' } : {}
      const answer = await app.send({ method, path: `${path}?a=1&token=${app.token}`, headers, ...body })
      assert.deepEqual([answer.status, answer.json?.error], [401, 'missing_token'], path)
      assert.match(String(answer.json?.message), /^This address takes no token in the query\./)
      assert.match(String(answer.json?.message), BEARER)
      assert.ok(!answer.text.includes(app.token))
    }
    assert.equal((await app.send({ path: `/api/inbox-test?token=${app.token}` })).status, 200)
  })

  test('400: a token in the query beside the one in the header', async () => {
    const token = await shared.app.createToken({ scope: 'processor' })
    const path = `/v1/inbox/events?token=${token}`
    const answer = await shared.app.send({ path, headers: jsonHeaders(token) })
    assert.equal(answer.status, 400)
    assert.match(String(answer.json?.message), /^This address takes no token in the query\. It takes only limit, /)
    assert.ok(!answer.text.includes(token))
  })

  test('404: an unknown path names the nearest route and /docs', async () => {
    const { app } = shared
    for (const [method, path, meant] of [
      ['POST', '/v1/inbox/event', 'POST /v1/inbox/events'],
      ['GET', '/v1/inbox/event', 'GET /v1/inbox/events'],
      ['POST', '/api/v1/inbox/events', 'POST /v1/inbox/events'],
      ['GET', '/ping', 'GET /api/ping'],
      ['GET', '/v1/inbox/events/7/payloads', 'GET /v1/inbox/events/{id}/payload'],
      ['GET', '/V1/INBOX/EVENTS', 'GET /v1/inbox/events'],
    ] as const) {
      const answer = await app.send({ method, path })
      assert.equal(answer.status, 404)
      assert.equal(
        answer.json?.message,
        `There is no such path. Did you mean ${meant}? /docs lists every address.`,
        `${method} ${path}`,
      )
    }
    for (const path of ['/wp-login.php', '/robots.txt', `/${'a'.repeat(3000)}`, `/v1${'/events'.repeat(50)}`]) {
      const answer = await app.send({ path })
      assert.equal(answer.json?.message, 'There is no such path. /docs lists every address.', path.slice(0, 40))
    }
  })

  test('404: what is suggested depends on the path alone, and repeats nothing of it', async () => {
    const { app } = shared
    const ids = [String((await post('{}')).json?.id), '999999999', app.token]
    const answers = await Promise.all(ids.map((id) => app.send({ path: `/v1/inbox/events/${id}/x` })))
    assert.equal(new Set(answers.map(({ json }) => json?.message)).size, 1)
    for (const { text } of answers) assert.ok(!text.includes(app.token) && !text.includes('999999999'))
  })

  test('404: an id that is unknown and one of another tenant get the same words', async () => {
    const { app } = shared
    const id = Number((await post('{}')).json?.id)
    const stranger = await app.createToken({ scope: 'processor', companyId: 43 })
    const messages = new Set<unknown>()
    for (const path of [`/v1/inbox/events/${id}`, '/v1/inbox/events/999999999']) {
      const answer = await app.send({ path, headers: jsonHeaders(stranger) })
      assert.equal(answer.status, 404)
      messages.add(answer.json?.message)
    }
    assert.deepEqual(
      [...messages],
      ['There is nothing at this address. Check the path and the id; /docs lists every address.'],
    )
  })

  test('405: names the methods that the address takes', async () => {
    const answer = await shared.app.send({ method: 'PUT', path: '/api/ping' })
    assert.equal(answer.json?.message, 'This address does not take that method. Use one of GET, HEAD, OPTIONS.')
  })

  test('403: the challenge names the scope that is needed, and the body stays as it is', async () => {
    const challengeOf = async (app: typeof shared.app, scope: string, method: 'GET' | 'POST') => {
      const headers = jsonHeaders(await app.createToken({ scope }))
      const body = method === 'POST' ? { body: '{}' } : {}
      const answer = await app.send({ method, path: '/v1/inbox/events', headers, ...body })
      assert.equal(answer.status, 403)
      assert.equal(answer.text, '{"ok":false,"error":"forbidden_scope"}')
      return String(answer.headers['www-authenticate'])
    }
    const start = 'Bearer realm="intray", error="insufficient_scope",'
    const ask = 'Ask the operator for a token with that scope.'
    assert.equal(
      await challengeOf(shared.app, 'cf', 'GET'),
      `${start} scope="processor", error_description="This token has the scope cf, and this call needs processor. ${ask}"`,
    )
    assert.equal(
      await challengeOf(single.app, '', 'POST'),
      `${start} scope="cf", error_description="This token has no scope, and this call needs cf. ${ask}"`,
    )
    assert.equal(
      await challengeOf(restricted.app, 'web', 'POST'),
      `${start} error_description="This token has the scope web, and this call needs cf or bot. ${ask}"`,
    )
    assert.match(await challengeOf(shared.app, 'processor', 'POST'), /scope processor, which may not send\./)
  })

  test('400: bad JSON is told with line and column where the parser knows them', async () => {
    for (const [body, place] of [
      ['{\n  "a": 1,\n}', ' at line 3, column 1'],
      ["{'a':1}", ' at line 1, column 2'],
      ['{"a":1 "b":2}', ' at line 1, column 8'],
      ['\ufeff{"a":1,}', ' at line 1, column 8'],
      [`{\n"a": "${'x'.repeat(70_000)}",\r\n"b" 1}`, ' at line 3, column 5'],
      ['{"a":[1,', ': it ends too early'],
      ['{"a":nope}', ' at line 1, column 7'],
    ] as const) {
      const answer = await post(body)
      assert.deepEqual([answer.status, answer.json?.error], [400, 'invalid_json'])
      assert.equal(
        answer.json?.message,
        `The body is not valid JSON${place}. Correct it and send it again.`,
        body.slice(0, 30),
      )
    }
  })

  test('400: a body cannot put words or numbers into the sentence', async () => {
    for (const body of [
      '{"a": at position 5 (line 66 column 67)',
      'in JSON at position 5 (line 66 column 67)',
      '{"in JSON at position 5 (line 66 column 67)": x}',
      '{"secret": "hunter2" x',
    ]) {
      const answer = await post(body)
      assert.equal(answer.json?.error, 'invalid_json')
      assert.doesNotMatch(String(answer.json?.message), /66|67|hunter|secret/, body)
    }
  })

  test('415: names the content type where it is a usual one, and repeats no other', async () => {
    const messageFor = async (type: string) => {
      const typed = { ...jsonHeaders(shared.app.token), 'Content-Type': type }
      const answer = await shared.app.send({ method: 'POST', path: '/v1/inbox/events', headers: typed, body: 'a=1' })
      assert.equal(answer.status, 415)
      assert.match(String(answer.json?.message), /"Content-Type: application\/json"\.$/)
      return String(answer.json?.message).split('. ')[0]
    }
    assert.equal(
      await messageFor('application/x-www-form-urlencoded'),
      'Content-Type is application/x-www-form-urlencoded',
    )
    assert.equal(await messageFor('multipart/form-data; boundary=x'), 'Content-Type is multipart/form-data')
    assert.equal(await messageFor('application/vnd.x'), 'Content-Type is not application/json')
    assert.equal(await messageFor('application/json; charset=latin1'), 'The charset in Content-Type is not utf-8')
    assert.equal(await messageFor('text/xml'), 'Content-Type is text/xml')
  })

  test('401: an address of the console says that it takes no token', async () => {
    const answer = await shared.app.send({ path: '/v1/console/overview', headers: jsonHeaders(shared.app.token) })
    assert.deepEqual([answer.status, answer.json?.error], [401, 'not_signed_in'])
    assert.match(String(answer.json?.message), /^This address takes a session of the console, not a token\./)
  })
})
