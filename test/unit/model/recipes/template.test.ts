import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import {
  fillTemplate,
  MAX_PLACES,
  parseTemplate,
  type Place,
  TemplateProblem,
} from '../../../../src/model/recipes/template.ts'

describe('templates', () => {
  test('are text and places', () => {
    assert.deepEqual(parseTemplate('tg:{/update_id}'), ['tg:', { from: 'pointer', pointer: '/update_id' }])
    assert.deepEqual(parseTemplate('{header:X-GitHub-Delivery}'), [{ from: 'header', name: 'x-github-delivery' }])
    assert.deepEqual(parseTemplate('{form:fields[email][value]}'), [{ from: 'field', name: 'fields[email][value]' }])
    assert.deepEqual(parseTemplate('{form}{hook}{body}{sha256}{timestamp}'), [
      { from: 'fields' },
      { from: 'hook' },
      { from: 'body' },
      { from: 'sha256' },
      { from: 'timestamp' },
    ])
    assert.deepEqual(parseTemplate('{?/a}{?form:b}'), [
      { from: 'exists', place: { from: 'pointer', pointer: '/a' } },
      { from: 'exists', place: { from: 'field', name: 'b' } },
    ])
    assert.deepEqual(parseTemplate('{strings:/a|x,y}{strings:}'), [
      { from: 'strings', strings: { pointer: '/a', keys: ['x', 'y'] } },
      { from: 'strings', strings: { pointer: '', keys: null } },
    ])
    assert.deepEqual(parseTemplate('always'), ['always'])
    assert.equal(parseTemplate('{/a}'.repeat(MAX_PLACES)).length, MAX_PLACES)
  })

  test('doubled braces are braces, in names too', () => {
    assert.deepEqual(parseTemplate('{{{/a}}b}'), ['{', { from: 'pointer', pointer: '/a}b' }])
    assert.deepEqual(parseTemplate('a{{b}}c'), ['a{b}c'])
  })

  test('that are none are explained', () => {
    const problems: Record<string, RegExp> = {
      '': /empty/,
      '{/a': /brace at character 1 is not closed/,
      'a}': /brace at character 2 closes nothing/,
      '{}': /\{\} is no place/,
      '{update_id}': /\{update_id\} is no place\. Write a JSON Pointer/,
      '{heder:x}': /is no place/,
      '{hook:x}': /is no place/,
      '{?hook}': /Behind \? stands/,
      '{header:}': /names no header/,
      '{header:a b}': /names no header/,
      '{form:}': /is no place/,
      '{/a~2}': /~ is not followed/,
      '{strings:a}': /does not begin with a slash/,
      '{?header:x}': /Behind \? stands/,
      [`{/${'a'.repeat(512)}}`]: /longer than 512/,
      [`x${'{/a}'.repeat(MAX_PLACES + 1)}`]: /more than 8 places/,
    }
    for (const [template, message] of Object.entries(problems)) {
      assert.throws(
        () => parseTemplate(template),
        (error) => error instanceof TemplateProblem && message.test(error.message),
        template,
      )
    }
  })

  test('are complete only if each place has a text', () => {
    const read = (place: Place) => (place.from === 'pointer' && place.pointer === '/a' ? '1' : null)
    assert.equal(fillTemplate(parseTemplate('x:{/a}:{/a}'), read), 'x:1:1')
    assert.equal(fillTemplate(parseTemplate('x:{/a}:{/b}'), read), null)
  })
})
