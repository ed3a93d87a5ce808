import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import test from 'node:test'
import { parse } from 'yaml'
import { renderMarkdown } from '../../../src/http/api-page/markdown.ts'
import { API_PAGE_CSP } from '../../../src/http/api-page/csp.ts'
import { type ApiDocument, createApiPage } from '../../../src/http/api-page/page.ts'
import { ApiDocumentAnswers } from '../../../src/http/api-document.ts'
import { escapeHtml } from '../../../src/http/api-page/html.ts'
import { ERRORS } from '../../../src/model/errors.ts'

const document = parse(readFileSync(new URL('../../../api/openapi.yaml', import.meta.url), 'utf8')) as ApiDocument
const ADDRESS = 'https://intray.example'
const pageFor = (of: ApiDocument, address: string) => createApiPage(of).join(escapeHtml(address))
const page = pageFor(document, ADDRESS)

/** The page as a reader sees it: without tags, style and break points. */
function visibleText(html: string): string {
  return html.replace(/<style>.*?<\/style>/s, '').replace(/<[^>]*>/g, '')
}

function smallDocument(description: string): ApiDocument {
  const field = { type: 'string', description }
  const answer = {
    description,
    headers: { [description]: { description } },
    content: {
      [description]: {
        schema: { type: 'object', properties: { [description]: field } },
        examples: { one: { summary: description, value: { ok: false, error: description, message: description } } },
      },
    },
  }
  const operation = {
    tags: [description],
    summary: description,
    description,
    parameters: [{ name: description, in: 'query', description }],
    requestBody: answer,
    responses: { [description]: answer },
  }
  const info = { title: description, version: description, summary: description, description }
  return { info, servers: [{ url: description, description }], paths: { [description]: { get: operation } } }
}

test('the page names every address and method of the document, and links to each', () => {
  const text = visibleText(page)
  for (const [path, item] of Object.entries(document.paths)) {
    for (const method of Object.keys(item)) assert.ok(text.includes(`${method.toUpperCase()} ${path}`), path)
  }
  const ids = new Set(Array.from(page.matchAll(/ id="([^"]+)"/g), ([, id]) => id))
  const targets = Array.from(page.matchAll(/href="#([^"]+)"/g), ([, target]) => target)
  assert.ok(targets.length > Object.keys(document.paths).length)
  for (const target of targets) assert.ok(ids.has(target), `#${target}`)
})

test('the page is under 600 kB', () => {
  assert.ok(Buffer.byteLength(page) < 600_000, String(Buffer.byteLength(page)))
})

test('examples name the address the page was asked at, and no other', () => {
  assert.ok(page.split(`${ADDRESS}/v1/inbox/events`).length > 6)
  assert.ok(!page.includes('127.0.0.1:8080'))
  assert.ok(pageFor(document, 'http://[::1]:8080').includes('curl -sS http://[::1]:8080/api/ping'))
})

test('every call with a token has an example in curl, PHP and Python', () => {
  for (const [path, item] of Object.entries(document.paths)) {
    for (const [method, { security }] of Object.entries(item)) {
      const takesToken = (security ?? document.security ?? []).some((one) => 'bearer' in one)
      const anchor = `${method}${path}`.replace(/[^A-Za-z0-9]+/g, '-').toLowerCase()
      const article = page.slice(page.indexOf(`<h3 id="${anchor}">`)).split('</article>')[0]!
      for (const language of ['curl', 'PHP', 'Python']) {
        assert.equal(article.includes(`<pre class="in-${language}">`), takesToken, `${method} ${path} in ${language}`)
      }
    }
  }
})

test('on a phone the list of contents is closed, and the first calls come before everything else', () => {
  assert.match(page, /<details class="contents"><summary>/)
  const main = page.slice(page.indexOf('<main'))
  assert.match(main, /^<main id="content">\s*<section aria-labelledby="first-calls">/)
})

test('no anchor is given twice', () => {
  const ids = Array.from(page.matchAll(/ id="([^"]+)"/g), ([, id]) => id)
  assert.deepEqual(ids, [...new Set(ids)])
})

test('the table of error codes holds exactly the codes of the catalogue, each with its sentence', () => {
  const listed = Array.from(page.matchAll(/<tr id="error-([a-z_]+)">/g), ([, code]) => code)
  assert.deepEqual(listed.toSorted(), Object.keys(ERRORS).toSorted())
  const table = page.slice(page.indexOf('<h2 id="error-codes">'))
  for (const [code, { retryable, message: sentence }] of Object.entries(ERRORS)) {
    // Real answers with this code have the sentence of their first field.
    const message =
      code === 'invalid_payload' ? '<code>source_ref</code> is longer than 512 characters (/source_ref).' : sentence
    const row = table.slice(table.indexOf(`<tr id="error-${code}">`)).split('</tr>')[0] ?? ''
    assert.ok(visibleText(row).includes(`${retryable ? '' : 'not '}retryable`), code)
    const shown = message.replaceAll('"', '&quot;').replaceAll('<API token>', '&lt;API token&gt;')
    assert.ok(row.includes(shown), code)
  }
})

test('the page holds no script and loads nothing from anywhere', () => {
  assert.doesNotMatch(page, /<script|http-equiv|<link|<base|<iframe|<img|<form|javascript:/i)
  assert.doesNotMatch(page, /\s(src|srcset|style|on[a-z]+)=/i)
  assert.doesNotMatch(page, /@import|url\(/i)
  for (const [, href = ''] of page.matchAll(/href="([^"]*)"/g)) assert.match(href, /^(#|\/openapi\.(yaml|json)$)/)
})

test('the policy allows exactly the style that is in the page', () => {
  const styles = Array.from(page.matchAll(/<style>(.*?)<\/style>/gs), ([, style = '']) => style)
  assert.equal(styles.length, 1)
  const hash = createHash('sha256')
    .update(styles[0] ?? '')
    .digest('base64')
  assert.equal(
    API_PAGE_CSP,
    `default-src 'none'; style-src 'sha256-${hash}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`,
  )
})

test('hostile text is shown as text wherever the document may hold it', () => {
  const hostile = `<img src=x onerror="alert('1')"></code></style><script>alert(1)</script>`
  const shown = pageFor(smallDocument(hostile), hostile)
  assert.doesNotMatch(shown, /<img|<script|onerror="/)
  assert.equal(shown.split('</style>').length, 2)
  assert.ok(shown.includes('&lt;img src=x onerror=&quot;alert(&#39;1&#39;)&quot;&gt;'))
})

test('hostile text stays text inside every piece of Markdown', () => {
  const hostile = '<img src=x onerror=alert(1)>'
  const pieces = [`\`${hostile}\``, `**${hostile}**`, `- ${hostile}`, `| ${hostile} |\n|---|\n| ${hostile} |`]
  for (const piece of [...pieces, `\`\`\`\n${hostile}\n\`\`\``]) {
    const { text } = renderMarkdown(piece)
    assert.doesNotMatch(text, /<img/)
    assert.match(text, /&lt;img src=x onerror=alert\(1\)&gt;/)
  }
})

test('Markdown knows paragraphs, code, bold, lists, fenced code and tables', () => {
  assert.equal(
    renderMarkdown('One\nline.\n\n**Two** `x*y`.').text,
    '<p>One\nline.</p><p><strong>Two</strong> <code>x*y</code>.</p>',
  )
  assert.equal(renderMarkdown('Text:\n- a\n  b\n- c').text, '<p>Text:</p><ul><li>a\nb</li><li>c</li></ul>')
  assert.equal(renderMarkdown('```sh\n- a\n\n  b\n```\nend').text, '<pre><code>- a\n\n  b</code></pre><p>end</p>')
  assert.match(
    renderMarkdown('| a | b |\n|---|---|\n| 1 | `2` |').text,
    /<th scope="col">b<\/th>.*<td><code>2<\/code><\/td>/s,
  )
})

test('a fence that is never closed ends with the text', () => {
  assert.equal(renderMarkdown('```\na').text, '<pre><code>a</code></pre>')
})

test('the descriptions in the document use no Markdown that the page cannot show', () => {
  const text = visibleText(page.replace(/<pre>.*?<\/pre>/gs, ''))
  assert.doesNotMatch(text, /\*\*|`|^\s*#+ |^\s*\d+\. |\]\(/m)
})

test('a reference that leads nowhere or in circles is reported, not shown as a gap', () => {
  const info = { title: 't', version: '1' }
  const at = (ref: string): ApiDocument => ({
    info,
    paths: { '/x': { get: { responses: { '200': { $ref: ref } } } } },
    components: { responses: { Round: { $ref: '#/components/responses/Round' } } },
  })
  assert.throws(() => createApiPage(at('#/components/responses/Missing')), /leads nowhere/)
  assert.throws(() => createApiPage(at('#/components/responses/Round')), /leads in circles/)
})

test('there is one page for each of so many addresses, and one more for all others', async () => {
  const parts = ['<p>', '</p>', '!'].map((part) => Buffer.from(part))
  const answers = new ApiDocumentAnswers({ yaml: parts[0]!, json: parts[1]!, pageParts: parts })
  const req = { headers: {} }
  const bodies = new Set<unknown>()
  for (let round = 0; round < 2; round += 1) {
    for (let n = 0; n < 100; n += 1) {
      const { body } = await answers.page(req, `http://h${n}`)
      const named = n < 15 ? `http://h${n}` : 'https://intray.example'
      assert.equal(body.toString(), `<p>${named}</p>${named}!`)
      bodies.add(body)
    }
  }
  assert.deepEqual([answers.pages, bodies.size], [16, 16])
})
