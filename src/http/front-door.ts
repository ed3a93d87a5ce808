// The answer at `/`: a browser is led to the console, or to the documentation where the console is off; anybody else gets the
// addresses to go on with as JSON.

import type { IncomingMessage } from 'node:http'
import type { Answer } from './problem.ts'
import { isConsoleRoute, type Route } from './routes.ts'
import { JSON_CONTENT } from './wire/answer.ts'

const DOCS = '/docs'
const CONSOLE = '/console'
const HEALTH = '/readyz'
/** Whether the console is on may change with the next start. */
const NEGOTIATED = { Vary: 'Accept', 'Cache-Control': 'no-cache' }

export function createFrontDoor(routes: readonly Route[]): (req: Pick<IncomingMessage, 'headers'>) => Answer {
  const hasConsole = routes.some(isConsoleRoute)
  const page: Answer = {
    status: 303,
    headers: { ...NEGOTIATED, Location: hasConsole ? CONSOLE : DOCS },
    body: '',
  }
  const addresses: Answer = {
    status: 200,
    headers: { ...NEGOTIATED, 'Content-Type': JSON_CONTENT },
    body: JSON.stringify({ ok: true, docs: DOCS, console: hasConsole ? CONSOLE : null, health: HEALTH }),
  }
  return ({ headers }) => (prefersHtml(headers.accept) ? page : addresses)
}

/** Browsers name text/html; a range of all types, as curl sends it, is no preference. */
export function prefersHtml(accept: string | undefined): boolean {
  const html = weightOf(accept ?? '', 'text/html')
  return html > 0 && html > weightOf(accept ?? '', 'application/json')
}

/** The weight of the most specific range that covers the type (RFC 9110, 12.5.1). */
function weightOf(accept: string, type: string): number {
  const weights = new Map(accept.split(',').map(rangeOf))
  return weights.get(type) ?? weights.get(`${type.split('/')[0]}/*`) ?? weights.get('*/*') ?? 0
}

function rangeOf(text: string): [range: string, weight: number] {
  const [range = '', ...parameters] = text.split(';').map((part) => part.trim().toLowerCase())
  const weight = parameters.find((parameter) => parameter.startsWith('q='))?.slice(2)
  return [range, weight === undefined ? 1 : Number(weight) || 0]
}
