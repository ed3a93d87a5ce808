import assert from 'node:assert/strict'
import { test } from 'node:test'
import { secretTexts } from '../../../../src/processing/push/target.ts'
import { keptText } from '../../../../src/processing/push/verdict.ts'

const SECRET = `pa/ss"w&ord/<se>'cret`

test('an answer that repeats a secret in another spelling keeps none of it', () => {
  const target = {
    url: `https://a.example/?key=${encodeURIComponent('que/ry&secret')}`,
    headers: [{ name: 'X-Key', value: SECRET, isSecret: true }],
    secrets: [],
  }
  const html = `pa/ss&quot;w&amp;ord/&lt;se&gt;&#039;cret`
  const answers = [
    SECRET,
    JSON.stringify({ key: SECRET }),
    JSON.stringify({ key: SECRET }).replaceAll('/', '\\/'),
    html,
    html.replace('&#039;', "'"),
    encodeURIComponent(SECRET),
    Buffer.from(SECRET).toString('base64'),
    new URL(target.url).search,
    'que/ry&secret',
  ]
  for (const answer of answers) {
    const kept = keptText(Buffer.from(`you sent ${answer}`), secretTexts(target))
    assert.match(kept, /^you sent .*\[redacted\]/, answer)
    assert.doesNotMatch(kept, /ord|ry/, answer)
  }
})
