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
  return look(page, { type: 'tag', values: TAGS })
}

/**
 * The same in both themes: all of it as it is, then what can differ, the contrast of colours, in the dark. Violations in the
 * dark begin with "dark".
 */
export async function lookInBothThemes(page: Page): Promise<Looked> {
  const light = await lookWithAxe(page)
  const paperOf = () => page.evaluate(() => getComputedStyle(document.documentElement).backgroundColor)
  const lightPaper = await paperOf()
  await page.emulateMedia({ colorScheme: 'dark' })
  const darkPaper = await paperOf()
  const dark = await look(page, { type: 'rule', values: ['color-contrast'] })
  await page.emulateMedia({ colorScheme: 'light' })
  if (lightPaper === darkPaper) throw new Error(`both themes have the same paper: ${lightPaper}`)
  const violations = [...light.violations, ...dark.violations.map((line) => `dark ${line}`)]
  return { violations, passes: light.passes + dark.passes }
}

async function look(page: Page, runOnly: { type: 'tag' | 'rule'; values: readonly string[] }): Promise<Looked> {
  const results = await page.evaluate(
    (only) =>
      (window as unknown as { axe: { run(node: Document, options: object): Promise<AxeResults> } }).axe.run(document, {
        runOnly: only,
        resultTypes: ['violations'],
      }),
    runOnly,
  )
  return {
    violations: results.violations.flatMap(({ id, nodes }) =>
      nodes.map(({ html, failureSummary }) => `${id}: ${html.slice(0, 200)} ${(failureSummary ?? '').slice(0, 300)}`),
    ),
    passes: results.passes.length,
  }
}
