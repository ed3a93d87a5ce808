// Holds a page against WCAG 2.2 AA with axe-core.

import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import type { Page } from 'playwright-core'

const SOURCE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')
const TAGS = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22a', 'wcag22aa', 'best-practice']

interface AxeResults {
  readonly violations: readonly {
    readonly id: string
    readonly nodes: readonly { readonly html: string; readonly failureSummary?: string }[]
  }[]
  readonly passes: readonly unknown[]
}

export interface Looked {
  /** One line for each violation. */
  readonly violations: readonly string[]
  /** How many rules had something to look at. */
  readonly passes: number
}

/** The page's context must bypass the CSP: axe is put into the page as a script. */
export async function lookWithAxe(page: Page): Promise<Looked> {
  await page.evaluate(SOURCE)
  const results = await page.evaluate(
    (tags) =>
      (window as unknown as { axe: { run(node: Document, options: object): Promise<AxeResults> } }).axe.run(document, {
        runOnly: { type: 'tag', values: tags },
        resultTypes: ['violations'],
      }),
    TAGS,
  )
  return {
    violations: results.violations.flatMap(({ id, nodes }) =>
      nodes.map(({ html, failureSummary }) => `${id}: ${html.slice(0, 200)} ${(failureSummary ?? '').slice(0, 300)}`),
    ),
    passes: results.passes.length,
  }
}
