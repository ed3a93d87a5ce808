// Renders the Markdown that api/openapi.yaml uses: paragraphs, `code`, **bold**, bullet lists, fenced code and tables. All other
// text, HTML included, is escaped and shown as typed.

import { type Html, html } from './html.ts'

export function renderMarkdown(source: string): Html {
  const lines = source.trim().split('\n')
  const blocks: Html[] = []
  let at = 0
  while (at < lines.length) {
    const start = at
    const kind = kindOf(lines[at] ?? '')
    at++
    if (kind === 'fence') {
      while (at < lines.length && kindOf(lines[at] ?? '') !== 'fence') at++
      blocks.push(html`<pre><code>${lines.slice(start + 1, at).join('\n')}</code></pre>`)
      at++
    } else if (kind !== 'blank') {
      while (at < lines.length && continues(kind, lines[at] ?? '')) at++
      blocks.push(BLOCKS[kind](lines.slice(start, at)))
    }
  }
  return html`${blocks}`
}

/** Inline text: `code` and **bold**. */
export function renderInline(source: string): Html {
  const parts = source.split(/(`[^`]+`|\*\*[^*]+\*\*)/)
  const rendered = parts.map((part, index) => {
    if (index % 2 === 0) return part
    return part.startsWith('`') ? html`<code>${part.slice(1, -1)}</code>` : html`<strong>${part.slice(2, -2)}</strong>`
  })
  return html`${rendered}`
}

type BlockKind = 'paragraph' | 'list' | 'table'

function kindOf(line: string): BlockKind | 'fence' | 'blank' {
  if (line.trim() === '') return 'blank'
  if (line.startsWith('```')) return 'fence'
  if (line.startsWith('- ')) return 'list'
  return line.startsWith('|') ? 'table' : 'paragraph'
}

/** A list continues over indented lines; other blocks end where another kind begins. */
function continues(kind: BlockKind, line: string): boolean {
  return kindOf(line) === kind || (kind === 'list' && line.startsWith('  ') && line.trim() !== '')
}

const BLOCKS: Readonly<Record<BlockKind, (lines: readonly string[]) => Html>> = {
  paragraph: (lines) => html`<p>${renderInline(lines.join('\n'))}</p>`,
  list: renderList,
  table: renderTable,
}

function renderList(lines: readonly string[]): Html {
  const items: string[] = []
  for (const line of lines) {
    if (line.startsWith('- ')) items.push(line.slice(2))
    else items.push(`${items.pop() ?? ''}\n${line.trim()}`)
  }
  return html`<ul>${items.map((item) => html`<li>${renderInline(item)}</li>`)}</ul>`
}

/** The second line of a table only separates the head from the rows. */
function renderTable(lines: readonly string[]): Html {
  const [head = [], , ...rows] = lines.map((line) =>
    line
      .trim()
      .replace(/^\||\|$/g, '')
      .split('|')
      .map((cell) => renderInline(cell.trim())),
  )
  return html`<table><thead><tr>${head.map((cell) => html`<th scope="col">${cell}</th>`)}</tr></thead>
<tbody>${rows.map((row) => html`<tr>${row.map((cell) => html`<td>${cell}</td>`)}</tr>`)}</tbody></table>`
}
