// The recipes that Intray brings, and how an event's recipe is found. Old versions stay in the list for ever: the first of a name is the
// newest, which new hooks get.

import { elementor } from './built-in/elementor.ts'
import { github } from './built-in/github.ts'
import { gravityForms } from './built-in/gravity-forms.ts'
import { mailgun } from './built-in/mailgun.ts'
import { messenger } from './built-in/messenger.ts'
import { shopify } from './built-in/shopify.ts'
import { slack } from './built-in/slack.ts'
import { standardWebhooks } from './built-in/standard-webhooks.ts'
import { stripe } from './built-in/stripe.ts'
import { telegram } from './built-in/telegram.ts'
import { twilio } from './built-in/twilio.ts'
import { typeform } from './built-in/typeform.ts'
import { whatsapp } from './built-in/whatsapp.ts'
import { type BuiltInRecipe, type RecipeRef, recipeRef } from './recipe.ts'

export const BUILT_IN_RECIPES: readonly BuiltInRecipe[] = [
  telegram,
  whatsapp,
  messenger,
  slack,
  stripe,
  github,
  standardWebhooks,
  twilio,
  shopify,
  typeform,
  elementor,
  gravityForms,
  mailgun,
]

const BY_REF = new Map(BUILT_IN_RECIPES.map((recipe) => [recipeRef(recipe), recipe]))

/** The newest version of a name. */
export function newestRecipe(name: string): BuiltInRecipe | null {
  return BUILT_IN_RECIPES.find((recipe) => recipe.name === name) ?? null
}

/** What the vendor calls the secret that it makes; null: Intray makes it, or there is none. */
export function vendorsSecret({ name }: Pick<BuiltInRecipe, 'name'>): string | null {
  const secret = newestRecipe(name)?.guide.secret
  return secret?.from === 'vendor' ? secret.name : null
}

/** Null for a custom recipe, and for one of a newer Intray. */
export function builtInRecipe(ref: RecipeRef): BuiltInRecipe | null {
  return BY_REF.get(ref) ?? null
}
