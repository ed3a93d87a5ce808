// docs/sending/recipes.md says what the built-in recipes do: its tables and steps are theirs. docs/sending/custom-recipes.md shows a file
// that is one, and names every field and place.

import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { parseCustomRecipe } from '../../src/hooks/custom-recipe.ts'
import { BUILT_IN_RECIPES } from '../../src/model/recipes/built-in.ts'
import { BODY_KINDS, type BuiltInRecipe } from '../../src/model/recipes/recipe.ts'

const read = (file: string) => readFileSync(new URL(`../../docs/sending/${file}`, import.meta.url), 'utf8')

const listed = (templates: readonly string[]) =>
  templates.length === 0 ? 'none' : templates.map((template) => `\`${template}\``).join(', ')

/** What the page is to say of a recipe. */
function linesOf({ name, title, sourceRef, channelRef, guide }: BuiltInRecipe): string[] {
  return [
    `| \`${name}\` | ${listed(sourceRef)} | ${listed(channelRef)} |`,
    `### ${title}`,
    ...(guide.secret === null
      ? []
      : [`Secret: ${guide.secret.name}, made by ${guide.secret.from === 'intray' ? 'Intray' : 'the sender'}.`]),
    ...guide.steps.map((step, n) => `${n + 1}. ${step.replace(/\{(url|secret|verify_token)\}/g, '`{$1}`')}`),
  ]
}

function missing(page: string): string[] {
  const lines = new Set(page.split('\n'))
  return BUILT_IN_RECIPES.flatMap(linesOf).filter((line) => !lines.has(line))
}

test('the page of recipes has the references of each, and the steps that set it up', () => {
  const page = read('recipes.md')
  assert.deepEqual(missing(page), [])
  assert.deepEqual(missing(page.replace('`tg:{hook}:{/update_id}`', '`tg:{/update_id}`')).length, 1)
  const rows = page.match(/^\| `[a-z-]+` \|/gm) ?? []
  assert.equal(rows.length, BUILT_IN_RECIPES.length, 'and no other')
})

test('the recipe file that the page shows is one, and each of its fields is explained', () => {
  const page = read('custom-recipes.md')
  const file = /```yaml\n([\s\S]*?)```/.exec(page)?.[1] ?? ''
  const parsed = parseCustomRecipe(file)
  assert.ok('recipe' in parsed, JSON.stringify(parsed))
  const prose = page.replace(file, '')
  const names = Array.from(file.matchAll(/(?<=^|[{,] ?|\s)([a-z_]+):(?=\s)/gm), ([, name]) => name!)
  assert.ok(names.length > 15)
  for (const name of [...names, ...BODY_KINDS])
    assert.ok(prose.includes(`\`${name}`) || prose.includes(`${name}:`), name)
})
