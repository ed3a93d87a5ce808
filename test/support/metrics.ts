// Reads the metrics of a service that was started with them on: `settings: { metrics: '127.0.0.1:0' }`.

import assert from 'node:assert/strict'
import type { TestApp } from './app.ts'

export async function scrapeText(app: TestApp): Promise<string> {
  const address = app.log.find(({ msg }) => msg === 'listening')?.metrics
  // An idle connection is closed after 5 s, perhaps while the next request is on its way.
  const answer = await fetch(String(address), { headers: { Connection: 'close' } })
  assert.equal(answer.status, 200)
  assert.match(answer.headers.get('content-type') ?? '', /^text\/plain; version=0\.0\.4/)
  return answer.text()
}

/** Every sample by its name with labels. */
export function samplesOf(text: string): Map<string, number> {
  const lines = text.split('\n').filter((line) => line !== '' && !line.startsWith('#'))
  return new Map(lines.map((line) => [line.slice(0, line.lastIndexOf(' ')), Number(line.slice(line.lastIndexOf(' ')))]))
}

export const scrape = async (app: TestApp): Promise<Map<string, number>> => samplesOf(await scrapeText(app))
