// Renders the page at /docs from the OpenAPI document: one HTML text without scripts or other files, which works under
// API_PAGE_CSP and escapes all text of the document. Errors are described once, at the end, to keep the page small.

import {
  type ApiDocument,
  type Body,
  codesOf,
  type Example,
  errorCodes,
  errorParts,
  examplesOf,
  type Field,
  fieldsOf,
  headerFields,
  type Media,
  type NamedOperation,
  namedField,
  type OperationGroup,
  operationGroups,
  type Parameter,
  resolve,
  type Security,
} from './document.ts'
import { exampleRequests, LANGUAGES } from './examples.ts'
import { escapeHtml, Html, html } from './html.ts'
import { renderInline, renderMarkdown } from './markdown.ts'
import { API_PAGE_STYLE } from './style.ts'

export type { ApiDocument } from './document.ts'

const FIRST_CALLS = ['ping', 'storeEvent']

/** The page, split where the address of the server stands, which is the URL of the document's first server. */
export function createApiPage(document: ApiDocument): string[] {
  const placeholder = document.servers?.[0]?.url ?? 'http://127.0.0.1:8080'
  return renderPage(document, placeholder).split(escapeHtml(placeholder))
}

function renderPage(document: ApiDocument, address: string): string {
  const { info } = document
  const groups = operationGroups(document)
  const page = html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${info.title} API</title>
<style>${new Html(API_PAGE_STYLE)}</style>
</head>
<body>
<a class="skip" href="#content">Skip to the content</a>
<div class="layout">
${renderHeader(document, address)}
<details class="contents"><summary>Contents</summary>${renderNavigation(groups)}</details>
<div class="side">${renderNavigation(groups)}</div>
<main id="content">
${renderFirstCalls(document, groups, address)}
<section aria-labelledby="introduction"><h2 id="introduction">How it works</h2>
${renderMarkdown(info.description ?? '')}</section>
${groups.map((group) => renderGroup(document, group, address))}
${renderErrors(document)}
</main>
</div>
</body>
</html>
`
  return page.text
}

function renderHeader({ info }: ApiDocument, address: string): Html {
  return html`<header><h1>${info.title} API</h1>
<p>${info.summary ?? ''}</p>
<p class="soft">This server: <code>${address}</code><br>
Version ${info.version}. For tools: <a href="/openapi.yaml">openapi.yaml</a>, <a href="/openapi.json">openapi.json</a>.</p>
<fieldset class="languages"><legend>Language of the examples</legend>${LANGUAGES.map(renderChoice)}</fieldset></header>`
}

/** A radio button selects the language of all examples, by CSS alone. */
function renderChoice(language: string, index: number): Html {
  const checked = index === 0 ? new Html(' checked') : ''
  return html`<label><input type="radio" name="language" id="language-${language}"${checked}> ${language}</label>`
}

function renderNavigation(groups: readonly OperationGroup[]): Html {
  const entry = ({ method, path, anchor }: NamedOperation) =>
    html`<li><a href="#${anchor}"><code><span class="method">${method}</span> ${breakable(path)}</code></a></li>`
  const lists = groups.map(({ name, operations }) => html`<h2>${name}</h2><ul>${operations.map(entry)}</ul>`)
  return html`<nav aria-label="On this page"><ul><li><a href="#first-calls">First calls</a></li>
<li><a href="#introduction">How it works</a></li></ul>
${lists}
<h2>Errors</h2><ul><li><a href="#error-codes">Error codes</a></li></ul></nav>`
}

function renderFirstCalls(document: ApiDocument, groups: readonly OperationGroup[], address: string): Html {
  const operations = groups.flatMap((group) => group.operations)
  const first = FIRST_CALLS.flatMap((id) => operations.find(({ operation }) => operation.operationId === id) ?? [])
  const steps = first.map(
    (named) => html`<h3>${named.operation.summary ?? ''}</h3>
${renderExamples(document, named, address)}`,
  )
  return html`<section aria-labelledby="first-calls"><h2 id="first-calls">First calls</h2>
<p>Put your token into the environment first: <code>export TOKEN=itr_…</code></p>
${steps}</section>`
}

function renderGroup(document: ApiDocument, group: OperationGroup, address: string): Html {
  return html`<section><h2>${group.name}</h2>
${renderMarkdown(group.description)}
${group.operations.map((named) => renderOperation(document, named, address))}</section>`
}

function renderOperation(document: ApiDocument, named: NamedOperation, address: string): Html {
  const { method, path, operation, anchor } = named
  const { summary = '', description = '', deprecated = false, parameters = [], requestBody, responses = {} } = operation
  const answers = Object.entries(responses).map(([status, answer]) => ({ status, answer: resolve(document, answer) }))
  const note = deprecated ? html`<p class="facts note">Deprecated.</p>` : ''
  return html`<article class="operation" aria-labelledby="${anchor}">
<h3 id="${anchor}"><a href="#${anchor}"><code><span class="method">${method}</span> ${breakable(path)}</code></a></h3>
<p class="facts"><strong>${summary}</strong></p>${note}
<p class="facts soft">${tokenNeed(operation.security ?? document.security ?? [])}</p>
${renderMarkdown(description)}
${renderExamples(document, named, address)}
${renderParameters(document, parameters)}
${requestBody ? renderRequest(document, resolve(document, requestBody)) : ''}
<h4>Answers</h4>
${answers.filter(({ status }) => !isError(status)).map(({ status, answer }) => renderAnswer(document, status, answer))}
${renderErrorLinks(
  document,
  answers.filter(({ status }) => isError(status)),
)}
</article>
`
}

function isError(status: string): boolean {
  return !/^[123]/.test(status)
}

function tokenNeed(security: Security): Html {
  if (security.length === 0) return html`No token needed.`
  const header = html`<code>Authorization: Bearer &lt;API token&gt;</code>`
  const takes = (name: string) => security.some((requirement) => name in requirement)
  if (takes('session') && !takes('bearer')) return html`Needs a session of the console.`
  const isOptional = security.some((requirement) => Object.keys(requirement).length === 0)
  return isOptional ? html`Takes the header ${header} or a parameter.` : html`Needs the header ${header}.`
}

/** The same request in each language, with the labels that select the language of the page. */
function renderExamples(document: ApiDocument, named: NamedOperation, address: string): Html | '' {
  const requests = exampleRequests(document, named, address)
  if (requests === null) return ''
  const tabs = LANGUAGES.map((one) => html`<label for="language-${one}">${one}</label>`)
  const blocks = LANGUAGES.map((one) => html`<pre class="in-${one}"><code>${requests[one]}</code></pre>`)
  return html`<div class="example"><div class="tabs" aria-hidden="true">${tabs}</div>
${blocks}</div>`
}

function renderParameters(document: ApiDocument, parameters: readonly Parameter[]): Html | '' {
  if (parameters.length === 0) return ''
  const fields = parameters.map((parameter) => {
    const found = resolve(document, parameter)
    return namedField(document, found.name ?? '', found, `${found.in ?? ''}, `)
  })
  return html`<h4>Parameters</h4>${renderFields('Parameter', fields)}`
}

function renderRequest(document: ApiDocument, body: Body): Html {
  const contents = Object.entries(body.content ?? {}).map(
    ([type, media]) => html`<p class="soft">Sent as <code>${type}</code>.</p>${renderMedia(document, media)}`,
  )
  return html`<h4>Request body</h4>${renderMarkdown(body.description ?? '')}${contents}`
}

function renderAnswer(document: ApiDocument, status: string, answer: Body): Html {
  const contents = Object.entries(answer.content ?? {}).map(([type, media]) => {
    const note = type === 'application/json' ? '' : html`<p class="soft">Sent as <code>${type}</code>.</p>`
    return html`${note}${renderMedia(document, media)}`
  })
  return html`<details open><summary>${renderStatus(status)}
${renderInline(answer.description ?? '')}</summary>
<div>${contents}${renderFields('Header', headerFields(document, answer))}</div></details>
`
}

function renderStatus(status: string): Html {
  return html`<span class="status s${status.charAt(0)}">${status}</span>`
}

function renderErrorLinks(document: ApiDocument, errors: readonly { status: string; answer: Body }[]): Html | '' {
  if (errors.length === 0) return ''
  const items = errors.map(({ status, answer }) => {
    const codes = codesOf(document, answer).map((code) => html` <a href="#error-${code}">${breakable(code)}</a>`)
    return html`<li>${renderStatus(status)}${codes}</li>`
  })
  return html`<h4>Errors</h4><ul class="codes">${items}</ul>`
}

function renderMedia(document: ApiDocument, media: Media): Html {
  const schema = resolve(document, media.schema ?? {})
  return html`${renderMarkdown(schema.description ?? '')}
${examplesOf(document, media).map(renderExample)}
${renderFields('Field', fieldsOf(document, schema))}`
}

function renderExample({ summary, value }: Example): Html {
  const text = typeof value === 'string' ? value.trimEnd() : JSON.stringify(value, null, 2)
  return html`<figure><figcaption>${summary ?? 'Example'}</figcaption><pre><code>${text}</code></pre></figure>`
}

function renderFields(kind: string, fields: readonly Field[]): Html | '' {
  if (fields.length === 0) return ''
  const rows = fields.map(
    ({ path, type, required, description }) => html`
<tr><th scope="row"><code>${breakable(path)}</code> <span class="type">${breakable(type)}${required ? '' : ', optional'}</span></th>
<td>${renderMarkdown(description)}</td></tr>`,
  )
  return html`<table class="pairs" aria-label="${kind}s"><thead><tr><th scope="col">${kind}</th><th scope="col">Meaning</th></tr></thead>
<tbody>${rows}</tbody></table>`
}

function renderErrors(document: ApiDocument): Html {
  const rows = errorCodes(document).map(
    ({ code, status, retryable, when, whatToDo }) => html`
<tr id="error-${code}"><th scope="row"><code>${breakable(code)}</code>
<span class="type">${renderStatus(status)}${retryable ? 'retryable' : 'not retryable'}</span></th>
<td><p>${renderInline(when)}.</p><p class="soft">${renderInline(whatToDo)}</p></td></tr>`,
  )
  const { fields, headers } = errorParts(document)
  return html`<section aria-labelledby="error-codes"><h2 id="error-codes">Error codes</h2>
<p>All values of <code>error</code>, each with the usual <code>message</code>. Many answers say more exactly what is wrong.</p>
<table class="pairs" aria-labelledby="error-codes"><thead><tr><th scope="col">Code</th><th scope="col">When, and what to do</th></tr></thead>
<tbody>${rows}</tbody></table>
<h3>The body of an error</h3>${renderFields('Field', fields.map(withoutCodes))}
<h3>The headers of an error</h3>${renderFields('Header', headers)}</section>`
}

/** The type of `error` would list only the codes of the first error. */
function withoutCodes(field: Field): Field {
  return field.path === 'error' ? { ...field, type: 'string' } : field
}

/** Allows line breaks between the words of a long name. */
function breakable(name: string): Html {
  return html`${name.split(/(?<=[_./-])/).map((part, index) => (index === 0 ? part : html`<wbr>${part}`))}`
}
