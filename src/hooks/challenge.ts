// Challenges: how a vendor finds out that an address is one of its user, before it sends anything.

import { hash } from 'node:crypto'
import type { BodyReader } from '../model/recipes/body-reader.ts'
import type { RecipeDefinition } from '../model/recipes/recipe.ts'
import { equalSecrets } from './secret-comparison.ts'

export interface ChallengeAnswer {
  readonly contentType: 'text/plain'
  readonly body: string
}

/** Of an answer: a challenge of Meta has 10 characters, one of Slack about 50. */
export const MAX_CHALLENGE_UNITS = 1024

/** What is pasted at Meta beside the address. Made from the hook id, which is a secret, so that nothing more has to be stored. */
export function verifyTokenOf(hookId: string): string {
  return hash('sha256', `intray verify token ${hookId}`, 'hex').slice(0, 32)
}

/** For a GET; null if it is no challenge, or not of someone who knows the verify token. `target`: path and query. */
export function answerGet(recipe: RecipeDefinition, target: string, hookId: string): ChallengeAnswer | null {
  const at = target.indexOf('?')
  if (recipe.challenge?.kind !== 'hub' || at === -1) return null
  const query = new URLSearchParams(target.slice(at + 1))
  if (query.get('hub.mode') !== 'subscribe') return null
  if (!equalSecrets(query.get('hub.verify_token') ?? '', verifyTokenOf(hookId))) return null
  return answerWith(query.get('hub.challenge'))
}

/** For a signed POST: null if it is a message. */
export function answerPost({ challenge }: RecipeDefinition, body: BodyReader): ChallengeAnswer | null {
  if (challenge?.kind !== 'echo' || body.pointer(challenge.when) !== challenge.equals) return null
  return answerWith(body.pointer(challenge.echo))
}

function answerWith(challenge: string | null): ChallengeAnswer | null {
  if (challenge === null || challenge === '' || challenge.length > MAX_CHALLENGE_UNITS) return null
  return { contentType: 'text/plain', body: challenge }
}
