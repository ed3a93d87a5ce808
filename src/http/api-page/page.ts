// The page at /docs: the OpenAPI document, made readable for an integrator. Promises one HTML text that needs nothing
// else (no script, no file, no other host), works under API_PAGE_CSP, and shows everything from the document as text.

import { createHash } from 'node:crypto'
import {
  type ApiDocument,
  type Body,
  type Example,
  errorCodes,
  examplesOf,
  type Field,
  fieldsOf,
  type Media,
  type NamedOperation,
  type OperationGroup,
  operationGroups,
  type Parameter,
  resolve,
  type Security,
  typeOf,
} from './document.ts'
import { Html, html } from './html.ts'
import { renderInline, renderMarkdown } from './markdown.ts'
import { API_PAGE_STYLE } from './style.ts'

export type { ApiDocument } from './document.ts'

const STYLE_HASH = createHash('sha256').update(API_PAGE_STYLE).digest('base64')

/** The value of Content-Security-Policy to send with the page: its own style, and nothing else. */
export const API_PAGE_CSP = `default-src 'none'; style-src 'sha256-${STYLE_HASH}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`

export function renderApiPage(document: ApiDocument): string {
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
${renderHeader(document)}
${renderNavigation(groups)}
<main id="content">
<section aria-labelledby="introduction"><h2 id="introduction">Introduction</h2>
${renderMarkdown(info.description ?? '')}</section>
${groups.map((group) => renderGroup(document, group))}
${renderErrorCodes(document)}
</main>
</div>
</body>
</html>
`
  return page.text
}

function renderHeader({ info, servers = [] }: ApiDocument): Html {
  const addresses = servers.map(({ url, description = '' }) => html`<br><code>${url}</code> ${description}`)
  return html`<header><h1>${info.title} API</h1>
<p>${info.summary ?? ''}</p>
<p class="soft">Version ${info.version}. For machines:
<a href="/openapi.yaml">openapi.yaml</a>, <a href="/openapi.json">openapi.json</a>.${addresses}</p></header>`
}

function renderNavigation(groups: readonly OperationGroup[]): Html {
  const entry = ({ method, path, anchor }: NamedOperation) =>
    html`<li><a href="#${anchor}"><code><span class="method">${method}</span> ${path}</code></a></li>`
  const lists = groups.map(({ name, operations }) => html`<h2>${name}</h2><ul>${operations.map(entry)}</ul>`)
  return html`<nav aria-label="On this page"><ul><li><a href="#introduction">Introduction</a></li></ul>
${lists}
<h2>Errors</h2><ul><li><a href="#error-codes">Error codes</a></li></ul></nav>`
}

function renderGroup(document: ApiDocument, { name, description, operations }: OperationGroup): Html {
  return html`<section><h2>${name}</h2>
${renderMarkdown(description)}
${operations.map((named) => renderOperation(document, named))}</section>`
}

function renderOperation(document: ApiDocument, { method, path, operation, anchor }: NamedOperation): Html {
  const { summary = '', description = '', deprecated = false, parameters = [], requestBody, responses = {} } = operation
  const note = deprecated ? html`<p class="facts note">Deprecated.</p>` : ''
  return html`<article class="operation" aria-labelledby="${anchor}">
<h3 id="${anchor}"><a href="#${anchor}"><code><span class="method">${method}</span> ${path}</code></a></h3>
<p class="facts"><strong>${summary}</strong></p>${note}
<p class="facts soft">${tokenNeed(operation.security ?? document.security ?? [])}</p>
${renderMarkdown(description)}
${renderParameters(document, parameters)}
${requestBody ? renderRequest(document, resolve(document, requestBody)) : ''}
<h4>Answers</h4>
${Object.entries(responses).map(([status, response]) => renderAnswer(document, status, resolve(document, response)))}
</article>
`
}

function tokenNeed(security: Security): Html {
  if (security.length === 0) return html`No token needed.`
  const header = html`<code>Authorization: Bearer &lt;API token&gt;</code>`
  const optional = security.some((requirement) => Object.keys(requirement).length === 0)
  return optional ? html`Takes the header ${header} or a parameter.` : html`Needs the header ${header}.`
}

function renderParameters(document: ApiDocument, parameters: readonly Parameter[]): Html | '' {
  if (parameters.length === 0) return ''
  const fields = parameters.map((parameter) => {
    const found = resolve(document, parameter)
    return namedField(document, found.name ?? '', found, `${found.in ?? ''}, `)
  })
  return html`<h4>Parameters</h4>${renderFields('Parameter', fields)}`
}

function namedField(document: ApiDocument, path: string, parameter: Parameter, place: string): Field {
  const { description = '', required = false, schema = {} } = parameter
  return { path, type: place + typeOf(document, schema), required, description }
}

function renderRequest(document: ApiDocument, body: Body): Html {
  const contents = Object.entries(body.content ?? {}).map(
    ([type, media]) => html`<p class="soft">Sent as <code>${type}</code>.</p>${renderMedia(document, media)}`,
  )
  return html`<h4>Request body</h4>${renderMarkdown(body.description ?? '')}${contents}`
}

/** What went well is open at once; errors are opened by whoever meets them. */
function renderAnswer(document: ApiDocument, status: string, answer: Body): Html {
  const open = status.startsWith('2') ? new Html(' open') : ''
  const headers = Object.entries(answer.headers ?? {}).map(([name, header]) =>
    namedField(document, name, resolve(document, header), ''),
  )
  const contents = Object.entries(answer.content ?? {}).map(([type, media]) => {
    const note = type === 'application/json' ? '' : html`<p class="soft">Sent as <code>${type}</code>.</p>`
    return html`${note}${renderMedia(document, media)}`
  })
  return html`<details${open}><summary><span class="status s${status.charAt(0)}">${status}</span>
${renderInline(answer.description ?? '')}</summary>
<div>${contents}${renderFields('Header', headers)}</div></details>
`
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

function renderErrorCodes(document: ApiDocument): Html {
  const rows = errorCodes(document).map(
    ({ code, status, retryable, when, whatToDo }) => html`
<tr id="error-${code}"><th scope="row"><code>${breakable(code)}</code>
<span class="type"><span class="status s${status.charAt(0)}">${status}</span>${retryable ? 'retryable' : 'not retryable'}</span></th>
<td><p>${renderInline(when)}.</p><p class="soft">${renderInline(whatToDo)}</p></td></tr>`,
  )
  return html`<section aria-labelledby="error-codes"><h2 id="error-codes">Error codes</h2>
<p>All values of <code>error</code>, with what the answer tells you to do.</p>
<table class="pairs" aria-labelledby="error-codes"><thead><tr><th scope="col">Code</th><th scope="col">When, and what to do</th></tr></thead>
<tbody>${rows}</tbody></table></section>`
}

/** Lets a long name break where its words end; on a narrow screen it would break anywhere. */
function breakable(name: string): Html {
  return html`${name.split(/(?<=[_./-])/).map((part, index) => (index === 0 ? part : html`<wbr>${part}`))}`
}
