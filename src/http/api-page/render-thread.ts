// A thread that parses api/openapi.yaml and renders its page, once: a second of work that must not hold up requests.

import { readFileSync } from 'node:fs'
import { parentPort } from 'node:worker_threads'
import { parse } from 'yaml'
import { type ApiDocument, createApiPage } from './page.ts'

export interface Rendered {
  readonly yaml: Uint8Array
  readonly json: Uint8Array
  /** The page, split where the address of the server stands. */
  readonly pageParts: readonly Uint8Array[]
}

const yaml = readFileSync(new URL('../../../api/openapi.yaml', import.meta.url))
const document = parse(yaml.toString()) as ApiDocument
const rendered: Rendered = {
  yaml,
  json: Buffer.from(JSON.stringify(document)),
  pageParts: createApiPage(document).map((part) => Buffer.from(part)),
}
parentPort!.postMessage(rendered)
