// "Send a sample": stores a sample request of the recipe, or one that is pasted, as a test event, and shows what the recipe read.

import { useMutation, useQueryClient } from '@tanstack/react-query'
import { type FormEvent, useState } from 'react'
import type { HookDetail, HookSample as Sent } from '../../../kits/typescript/src/schema.ts'
import { addressFor, Link } from '../router.tsx'
import { useApi, useMayChange, useSession } from '../session.tsx'
import { SafeText } from '../text/safe-text.tsx'
import { ErrorNotice } from '../ui/controls.tsx'
import { Warnings } from './hook-deliveries.tsx'
import { useRecipes } from './use-recipes.ts'

const TYPES = ['application/json', 'application/x-www-form-urlencoded', 'application/xml', 'text/plain'] as const

export function HookSample({ hook }: { readonly hook: HookDetail }) {
  const api = useApi()
  const queryClient = useQueryClient()
  const mayChange = useMayChange()
  const recipes = useRecipes()
  const brings = recipes.data?.recipes.find(({ recipe }) => recipe === hook.recipe)?.has_sample ?? false
  const [isOwn, setOwn] = useState(false)
  const send = useMutation({
    mutationFn: (body: { readonly body?: string; readonly content_type?: string }) =>
      api.call('POST /v1/console/hooks/{key_id}/samples', { path: { key_id: hook.key_id }, body }),
    onSuccess: () => queryClient.invalidateQueries({ queryKey: ['hooks'] }),
  })
  const withBody = isOwn || !brings
  const submit = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault()
    const form = new FormData(event.currentTarget)
    send.mutate(withBody ? { body: String(form.get('body')), content_type: String(form.get('type')) } : {})
  }
  return (
    <section className="card stack" aria-labelledby="hook-sample">
      <h3 id="hook-sample">Send a sample</h3>
      <p className="quiet">
        Stores a request as a test event and shows what the recipe reads. Its signature is not checked, and it has no
        references, so that it is never taken for a message of the vendor.
      </p>
      <form className="stack" onSubmit={submit}>
        {brings && (
          <label className="check">
            <input type="checkbox" checked={isOwn} onChange={(event) => setOwn(event.target.checked)} /> Paste a request
            of my own
          </label>
        )}
        {withBody && <BodyFields />}
        <p className="actions">
          <button type="submit" className="button main-button" disabled={!mayChange || send.isPending}>
            Send a sample
          </button>
          {!mayChange && <span className="quiet">Only admins may send samples.</span>}
        </p>
      </form>
      {send.isError && <ErrorNotice error={send.error} />}
      {send.isSuccess && <WhatWasRead sent={send.data} />}
    </section>
  )
}

function BodyFields() {
  return (
    <>
      <label className="field">
        Content-Type
        <input name="type" defaultValue={TYPES[0]} list="sample-types" maxLength={200} required />
      </label>
      <datalist id="sample-types">
        {TYPES.map((type) => (
          <option key={type} value={type} />
        ))}
      </datalist>
      <label className="field">
        Body, as the vendor sends it
        <textarea name="body" rows={8} maxLength={60_000} spellCheck={false} required />
      </label>
    </>
  )
}

function WhatWasRead({ sent: { id, read } }: { readonly sent: Sent }) {
  const { tenant } = useSession()
  const rows: readonly (readonly [string, string | null])[] = [
    ['source_ref', read.source_ref],
    ['channel_ref', read.channel_ref],
    ['Contact', read.contact.name],
    ['E-mail', read.contact.email],
    ['Type', read.message_type],
    ['Text', read.snippet],
  ]
  return (
    <div className="stack" role="status">
      <p className="good-news">
        Stored as <Link to={addressFor(tenant, 'events', id)}>event {id}</Link>. Of a request of the vendor, the recipe
        would read:
      </p>
      <dl className="facts">
        {rows.map(([name, value]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{value === null ? <span className="quiet">none</span> : <SafeText text={value} maxLength={600} />}</dd>
          </div>
        ))}
      </dl>
      {read.is_batch && <p className="quiet">It holds several messages: one event, without a conversation.</p>}
      <Warnings warnings={read.warnings} />
    </div>
  )
}
