import assert from 'node:assert/strict'
import type { IncomingMessage } from 'node:http'
import { test } from 'node:test'
import fc from 'fast-check'
import { commandMediaProblem, contentEncoding, messageMediaProblem } from '../../../../src/http/wire/media.ts'
import { anyText } from '../../../support/text.ts'

function request(...values: string[]): IncomingMessage {
  return {
    rawHeaders: values.flatMap((value) => ['Content-Type', value]),
    headers: values[0] === undefined ? {} : { 'content-type': values[0] },
  } as unknown as IncomingMessage
}

const isJson = (...values: string[]) => commandMediaProblem(request(...values)) === null
const mayBeMessage = (...values: string[]) => messageMediaProblem(request(...values)) === null

test('application/json is JSON, with parameters or without', () => {
  for (const value of [
    'application/json',
    'Application/Json',
    'application/json;charset=utf-8',
    'application/json ; charset="UTF-8"',
    'application/json; charset=utf8; v=1',
    'application/json;\tcharset=utf-8\t',
    'application/json; profile="a;b,c"',
  ]) {
    assert.ok(isJson(value), value)
    assert.ok(mayBeMessage(value), value)
  }
})

test('anything that only looks like it is not', () => {
  for (const value of [
    '',
    'json',
    'text/json',
    'application/jsonp',
    'application/json x',
    'application/json,application/json',
    'application/problem+json',
    'application/json; charset=latin1',
    'application/json; charset="latin1"',
    'application/json; charset=utf-8; charset=latin1',
    'application/json; charset',
    'application/json; charset="utf-8',
    'application/json; charset=""',
    'application/json\n',
  ]) {
    assert.ok(!isJson(value), JSON.stringify(value))
  }
})

test('no header and two headers are not', () => {
  assert.ok(!isJson())
  for (const isTaken of [isJson, mayBeMessage]) {
    assert.ok(!isTaken('application/json', 'application/json'))
    assert.ok(!isTaken('application/json', ''))
    assert.ok(!isTaken('', ''))
  }
})

test('a message may have other types, or none; a command may not', () => {
  for (const value of [
    'application/problem+json',
    'application/vnd.api+json; charset=utf-8',
    'Application/CloudEvents+JSON',
    'application/a+b+json',
    'text/plain',
    'Text/Plain;charset=UTF-8',
    'application/octet-stream',
  ]) {
    assert.ok(mayBeMessage(value), value)
    assert.ok(!isJson(value), value)
  }
  assert.ok(mayBeMessage())
  assert.ok(mayBeMessage(''))
  for (const value of [
    'application/x-www-form-urlencoded',
    'multipart/form-data; boundary=x',
    'multipart/mixed',
    'text/html',
    'text/json',
    'text/plainx',
    'application/json+x',
    'application/+json+',
    '+json',
    'application/x+json, text/plain',
    'text/plain; charset=latin1',
    'application/x+json; charset=utf-16',
    'application/octet-stream; charset',
  ]) {
    assert.ok(!mayBeMessage(value), value)
  }
})

test('the answer to a form names a fix that helps: another header alone would not', () => {
  for (const value of ['application/x-www-form-urlencoded', 'multipart/form-data; boundary=x', 'Multipart/Mixed']) {
    assert.match(
      messageMediaProblem(request(value))!.message!,
      /A form is not taken\. Make one JSON object of its fields/,
    )
  }
  assert.doesNotMatch(messageMediaProblem(request('text/xml'))!.message!, /form|fields/)
})

test('a content type as long as headers may be is judged all the same', () => {
  for (const part of ['; a=b', ';\t', '; a="', ' ', ';a=b;', '; charset=utf-8', '"']) {
    assert.ok(!isJson(`application/json${part.repeat(16_000)}@`), JSON.stringify(part))
    assert.ok(!mayBeMessage(`application/a+json${part.repeat(16_000)}@`), JSON.stringify(part))
  }
})

test('no content type makes it fail', () => {
  fc.assert(fc.property(anyText(), (value) => void isJson(`application/json${value}`)))
  fc.assert(fc.property(anyText(), (value) => void mayBeMessage(value)))
  assert.ok(!mayBeMessage(`a/${'+json'.repeat(16_000)}@`))
})

test('encodings are identity and gzip, by either name and in any case', () => {
  const encoding = (value?: string) =>
    contentEncoding({ headers: value === undefined ? {} : { 'content-encoding': value } } as IncomingMessage)
  for (const value of [undefined, '', 'identity', 'IDENTITY', ' identity ']) assert.equal(encoding(value), 'identity')
  for (const value of ['gzip', 'x-gzip', 'GZip', ' gzip']) assert.equal(encoding(value), 'gzip')
  for (const value of ['br', 'deflate', 'gzip, gzip', 'gzip,identity', 'gzipx', 'x-gzip2', 'gzip;q=1']) {
    assert.deepEqual(encoding(value), { code: 'unsupported_encoding' }, value)
  }
})
