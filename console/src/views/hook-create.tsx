// The dialog that creates a hook: which vendor, what it is called, who makes its secret. Then it shows what to paste at the vendor.

import { useMutation, useQueryClient } from '@tanstack/react-query'
import { type FormEvent, useState } from 'react'
import type { HookCommand, HookDetail, Recipe } from '../../../kits/typescript/src/schema.ts'
import { useApi } from '../session.tsx'
import { ErrorNotice, Loading } from '../ui/controls.tsx'
import { Dialog } from '../ui/dialog.tsx'
import { LifetimeField, SecretField } from './credential-parts.tsx'
import { HookSetup, lacksSecret } from './hook-setup.tsx'
import { useRecipes } from './use-recipes.ts'

const CUSTOM = 'custom'
export const MAX_SECRET = 1024

interface CreateHookProps {
  readonly onClose: () => void
  /** After the address was shown. */
  readonly onDone: (keyId: string) => void
}

export function CreateHook({ onClose, onDone }: CreateHookProps) {
  const api = useApi()
  const queryClient = useQueryClient()
  const recipes = useRecipes()
  const create = useMutation({
    mutationFn: (body: HookCommand) => api.call('POST /v1/console/hooks', { body }),
    onSuccess: () => queryClient.invalidateQueries({ queryKey: ['hooks'] }),
    // A secret must not stay in memory.
    gcTime: 0,
  })
  const made = create.data?.hook
  const close = made ? () => onDone(made.key_id) : onClose
  return (
    <Dialog title={made ? 'Set it up at the vendor' : 'Create a hook'} onClose={close}>
      {made ? (
        <NewHook hook={made} onDone={close} />
      ) : recipes.isError ? (
        <ErrorNotice error={recipes.error} onRetry={() => void recipes.refetch()} />
      ) : recipes.isPending ? (
        <Loading what="the recipes" />
      ) : (
        <HookForm
          recipes={recipes.data.recipes}
          isPending={create.isPending}
          error={create.error}
          onSubmit={(body) => create.mutate(body)}
          onClose={onClose}
        />
      )}
    </Dialog>
  )
}

interface HookFormProps {
  readonly recipes: readonly Recipe[]
  readonly isPending: boolean
  readonly error: unknown
  readonly onSubmit: (body: HookCommand) => void
  readonly onClose: () => void
}

const OPTIONAL = ['definition', 'name', 'scope', 'secret', 'rate_limit', 'max_body_bytes'] as const

function HookForm({ recipes, isPending, error, onSubmit, onClose }: HookFormProps) {
  const [name, setName] = useState(recipes[0]?.name ?? CUSTOM)
  const recipe = recipes.find((one) => one.name === name) ?? null
  const submit = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault()
    const form = new FormData(event.currentTarget)
    const given = (field: string) => String(form.get(field) ?? '').trim()
    const lifetime = given('lifetime')
    onSubmit({
      recipe: name,
      ...Object.fromEntries(OPTIONAL.flatMap((field) => (given(field) === '' ? [] : [[field, given(field)]]))),
      ...(lifetime === '' ? {} : { expires_in: lifetime }),
    })
  }
  return (
    <form className="stack" onSubmit={submit}>
      <label className="field">
        Vendor
        <select value={name} onChange={(event) => setName(event.target.value)}>
          {recipes.map((one) => (
            <option key={one.name} value={one.name}>
              {one.title}
            </option>
          ))}
          <option value={CUSTOM}>Another one, by a recipe of your own</option>
        </select>
      </label>
      {recipe ? <RecipeNote recipe={recipe} /> : <DefinitionField />}
      <label className="field">
        Name
        <input name="name" placeholder="support bot" maxLength={200} />
      </label>
      {(recipe === null || recipe.signature?.needs_secret) && <SecretChoice key={name} recipe={recipe} />}
      <LifetimeField />
      <details>
        <summary>Scope and limits</summary>
        <div className="stack details-body">
          <label className="field">
            Scope of its events (empty: {name})
            <input name="scope" pattern="[a-z0-9][a-z0-9_.:\-]{0,63}" />
          </label>
          <label className="field">
            Requests on each node, such as 100/1s (empty: the setting of the server)
            <input name="rate_limit" maxLength={40} />
          </label>
          <label className="field">
            Largest body in bytes (empty: the setting of the server)
            <input name="max_body_bytes" inputMode="numeric" pattern="[0-9]{4,9}" />
          </label>
        </div>
      </details>
      {error !== null && <ErrorNotice error={error} />}
      <p className="actions">
        <button type="submit" className="button main-button" disabled={isPending}>
          Create
        </button>
        <button type="button" className="button" onClick={onClose}>
          Cancel
        </button>
      </p>
    </form>
  )
}

function RecipeNote({ recipe }: { readonly recipe: Recipe }) {
  return (
    <p className="quiet">
      {recipe.signature?.needs_secret
        ? 'Every request is checked against a secret.'
        : 'This vendor does not sign its requests: the address is the secret.'}{' '}
      {recipe.source_ref.length > 0
        ? 'What the vendor sends again is stored once.'
        : 'The vendor sends no id: two equal messages are two events.'}
    </p>
  )
}

function DefinitionField() {
  return (
    <>
      <label className="field">
        Recipe, in JSON or YAML
        <textarea name="definition" rows={8} spellCheck={false} required aria-describedby="definition-help" />
      </label>
      <p id="definition-help" className="quiet">
        ./intray hook check --recipe FILE --sample BODY explains what a recipe makes of a request.
      </p>
    </>
  )
}

function SecretChoice({ recipe }: { readonly recipe: Recipe | null }) {
  const ofVendor = recipe?.setup?.secret?.from === 'vendor'
  const name = recipe?.setup?.secret?.name
  return (
    <SecretField
      label={name ?? 'Secret'}
      maxLength={MAX_SECRET}
      help={
        ofVendor
          ? 'The vendor makes it. If it shows it only after it has the address, leave this empty and enter it later.'
          : 'Empty: Intray makes one and shows it once. It is stored encrypted.'
      }
    />
  )
}

function NewHook({ hook, onDone }: { readonly hook: HookDetail; readonly onDone: () => void }) {
  return (
    <div className="stack">
      <p role="status">
        <strong>
          {hook.secret
            ? 'Copy the secret now. It is shown this once.'
            : 'The hook is there. Its address is shown again on its page.'}
        </strong>
      </p>
      <HookSetup hook={hook} secret={hook.secret ?? null} />
      {lacksSecret(hook) && (
        <p className="warning">
          Requests are refused until the secret of the vendor is entered on the page of the hook.
        </p>
      )}
      <p className="actions">
        <button type="button" className="button main-button" onClick={onDone}>
          Done
        </button>
      </p>
    </div>
  )
}
