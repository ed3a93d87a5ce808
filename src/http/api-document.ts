// Serves the API document: the YAML file, the same as JSON, and the page at /docs.

import { readFileSync } from 'node:fs'
import { parse } from 'yaml'
import { API_PAGE_CSP, type ApiDocument, createApiPage } from './api-page/page.ts'
import type { Answer } from './problem.ts'

const FILE = new URL('../../api/openapi.yaml', import.meta.url)

export interface ApiDocumentAnswers {
  readonly yaml: Answer
  readonly json: Answer
  /** `address`: the one at which the client reached the server. */
  page(address: string): Answer
}

let answers: ApiDocumentAnswers | null = null

/** Memoized at the first request. */
export function apiDocument(): ApiDocumentAnswers {
  answers ??= render()
  return answers
}

function render(): ApiDocumentAnswers {
  const yaml = readFileSync(FILE, 'utf8')
  const document = parse(yaml) as ApiDocument
  const page = createApiPage(document)
  return {
    yaml: answer('application/yaml; charset=utf-8', yaml),
    json: answer('application/json; charset=utf-8', JSON.stringify(document)),
    page: (address) => answer('text/html; charset=utf-8', page(address), { 'Content-Security-Policy': API_PAGE_CSP }),
  }
}

function answer(contentType: string, body: string, more: Record<string, string> = {}): Answer {
  return { status: 200, headers: { 'Content-Type': contentType, 'X-Content-Type-Options': 'nosniff', ...more }, body }
}
