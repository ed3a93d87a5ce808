// Serves the API document: the YAML file, the same as JSON, and the page at /docs.

import { once } from 'node:events'
import type { IncomingMessage } from 'node:http'
import { Worker } from 'node:worker_threads'
import { escapeHtml } from './api-page/html.ts'
import { API_PAGE_CSP } from './api-page/csp.ts'
import type { Rendered } from './api-page/render-thread.ts'
import type { Answer } from './problem.ts'
import { ReadyAnswer } from './ready-answer.ts'

/**
 * A page takes 370 KB for each address that it names. Clients choose the address, so there are so many pages and no more: a page
 * made for each request would stay in memory until its client has read it.
 */
const MAX_PAGES = 16
/** What the last page names, for all other addresses. */
const EXAMPLE_ADDRESS = 'https://intray.example'

export class ApiDocumentAnswers {
  readonly yaml: ReadyAnswer
  readonly json: ReadyAnswer
  readonly #parts: readonly Uint8Array[]
  readonly #pages = new Map<string, ReadyAnswer>()

  constructor({ yaml, json, pageParts }: Rendered) {
    this.yaml = new ReadyAnswer(headersOf('application/yaml; charset=utf-8'), yaml)
    this.json = new ReadyAnswer(headersOf('application/json; charset=utf-8'), json)
    this.#parts = pageParts
  }

  get pages(): number {
    return this.#pages.size
  }

  /** `address`: the one at which the client reached the server, such as `https://intray.example`. */
  page(req: Pick<IncomingMessage, 'headers'>, address: string): Answer | Promise<Answer> {
    const hasPage = this.#pages.has(address) || this.#pages.size < MAX_PAGES - 1
    const named = hasPage ? address : EXAMPLE_ADDRESS
    const page = this.#pages.get(named) ?? new ReadyAnswer(PAGE_HEADERS, this.#join(named))
    this.#pages.set(named, page)
    return page.answer(req)
  }

  #join(address: string): Buffer {
    const named = Buffer.from(escapeHtml(address))
    return Buffer.concat(this.#parts.flatMap((part, index) => (index === 0 ? [part] : [named, part])))
  }
}

let answers: Promise<ApiDocumentAnswers> | null = null

/** Rendered at the first request. */
export function apiDocument(): Promise<ApiDocumentAnswers> {
  answers ??= render().catch((error: unknown) => {
    answers = null
    throw error
  })
  return answers
}

async function render(): Promise<ApiDocumentAnswers> {
  const thread = new Worker(new URL('api-page/render-thread.ts', import.meta.url))
  const [rendered] = (await once(thread, 'message')) as [Rendered]
  return new ApiDocumentAnswers(rendered)
}

function headersOf(contentType: string, more: Record<string, string> = {}) {
  return {
    'Content-Type': contentType,
    'Cache-Control': 'no-cache',
    Vary: 'Accept-Encoding',
    'X-Content-Type-Options': 'nosniff',
    ...more,
  }
}

const PAGE_HEADERS = headersOf('text/html; charset=utf-8', { 'Content-Security-Policy': API_PAGE_CSP })
