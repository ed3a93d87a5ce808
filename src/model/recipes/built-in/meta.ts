// What the recipes for Meta's platforms share: the signature, the challenge, how a hook is set up.

import type { ChallengeRule, RecipeGuide, SignatureRule } from '../recipe.ts'

export const META_SIGNATURE: SignatureRule = {
  kind: 'hmac',
  algorithm: 'sha256',
  encoding: 'hex',
  signature: { in: ['{header:x-hub-signature-256}'], prefix: 'sha256=' },
  signs: ['{body}'],
  secret: 'text',
}

export const META_CHALLENGE: ChallengeRule = { kind: 'hub' }

export function metaGuide(product: string, fields: string): RecipeGuide {
  return {
    secret: { from: 'vendor', name: 'App secret' },
    steps: [
      'In the app dashboard of Meta, copy the app secret (App settings, Basic) into the hook.',
      `Under ${product}, Webhooks, paste {url} as callback URL and {verify_token} as verify token. Meta calls the address at once.`,
      `Subscribe to ${fields}.`,
    ],
  }
}
