// Finds the custom recipes that the rows of a step name: in one query, and in none if they name none.

import { createRecipeOf, type RecipeOf } from '../../../model/payload-reading.ts'
import type { JournalRow } from '../../../model/index-step.ts'
import { customDigest } from '../../../model/recipes/recipe.ts'
import { bigints, texts, unnested } from '../connection/binary-array.ts'
import type { Connection, Statement } from '../connection/connection.ts'

const SELECT: Statement = {
  name: 'intray_recipes_of_rows',
  text: `SELECT r.company_id, r.account_id, r.digest, r.recipe FROM intray.recipes r
  JOIN (SELECT DISTINCT k.* FROM (SELECT ${unnested('bigint bigint text')}) AS k (company_id, account_id, digest)) k
    ON r.company_id = k.company_id AND r.account_id = k.account_id AND r.digest = k.digest`,
}

const BUILT_IN = createRecipeOf(() => null)

type Named = Pick<JournalRow, 'recipe' | 'companyId' | 'accountId'>

export async function customRecipesOf(connection: Connection, rows: readonly Named[]): Promise<RecipeOf> {
  const named = rows.filter(({ recipe }) => recipe !== null && customDigest(recipe) !== null)
  if (named.length === 0) return BUILT_IN
  const found = await connection.query(SELECT, [
    bigints(named.map(({ companyId }) => companyId)),
    bigints(named.map(({ accountId }) => accountId)),
    texts(named.map(({ recipe }) => customDigest(recipe!)!)),
  ])
  const definitions = new Map(
    found.map((row) => [`${row.company_id}:${row.account_id}:${row.digest}`, row.recipe as string]),
  )
  return createRecipeOf(
    ({ companyId, accountId }, digest) => definitions.get(`${companyId}:${accountId}:${digest}`) ?? null,
  )
}
