// Dialogs that set, change and remove an endpoint, and rotate its signing secret.

import { useMutation, useQueryClient } from '@tanstack/react-query'
import { type FormEvent, useState } from 'react'
import type { Endpoint, EndpointCommand } from '../../../kits/typescript/src/schema.ts'
import { useApi } from '../session.tsx'
import { ErrorNotice } from '../ui/controls.tsx'
import { Dialog } from '../ui/dialog.tsx'
import { Confirm, CopyField, OverlapField, overlapSeconds, SecretField } from './credential-parts.tsx'
import { type HeaderDraft, HeaderFields } from './endpoint-headers.tsx'

const MAX_SECRET = 200
const SECRET_FORM = 'It begins with whsec_, then base64 of 24 to 64 bytes.'

interface SetEndpointProps {
  readonly subscription: string
  /** Null if there is none yet. */
  readonly endpoint: Endpoint | null
  readonly onClose: () => void
}

export function SetEndpoint({ subscription, endpoint, onClose }: SetEndpointProps) {
  const api = useApi()
  const queryClient = useQueryClient()
  const [headers, setHeaders] = useState<readonly HeaderDraft[] | null>(endpoint === null ? [] : null)
  // Kept, so that what the dialog says does not change once the endpoint is there.
  const [old] = useState(endpoint)
  const set = useMutation({
    mutationFn: (body: EndpointCommand) =>
      api.call('POST /v1/inbox/subscriptions/{name}/endpoint', { path: { name: subscription }, body }),
    onSuccess: async (answer) => {
      await queryClient.invalidateQueries({ queryKey: ['endpoints'] })
      if (answer.endpoint.secret === undefined) onClose()
    },
    // Secrets must not stay in memory.
    gcTime: 0,
  })
  const secret = set.data?.endpoint.secret
  const submit = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault()
    set.mutate({ ...commandOf(new FormData(event.currentTarget)), ...(headers && { headers: headers.map(headerOf) }) })
  }
  return (
    <Dialog title={old ? `Edit the endpoint of ${subscription}` : `An endpoint for ${subscription}`} onClose={onClose}>
      {secret !== undefined ? (
        <NewSecret secret={secret} onClose={onClose} />
      ) : (
        <form className="stack" onSubmit={submit}>
          <UrlField old={old} />
          <label className="field">
            Body
            <select name="body" defaultValue={old?.body ?? 'event'}>
              <option value="event">the event, as the inbox API gives it</option>
              <option value="raw">the payload alone, as it was sent</option>
            </select>
          </label>
          <div className="range">
            <NumberField name="timeout_s" label="Time limit in seconds" value={old?.timeout_s ?? 10} max={60} />
            <NumberField name="concurrency" label="Conversations at once" value={old?.concurrency ?? 8} max={64} />
          </div>
          <HeaderFields old={old?.headers ?? null} drafts={headers} onChange={setHeaders} />
          {old === null && (
            <SecretField
              label="Signing secret"
              maxLength={MAX_SECRET}
              help={`Empty: Intray makes one and shows it once. ${SECRET_FORM}`}
            />
          )}
          {set.isError && <ErrorNotice error={set.error} />}
          <p className="actions">
            <button type="submit" className="button main-button" disabled={set.isPending}>
              {old ? 'Save' : 'Set the endpoint'}
            </button>
            <button type="button" className="button" onClick={onClose}>
              Cancel
            </button>
          </p>
        </form>
      )}
    </Dialog>
  )
}

function UrlField({ old }: { readonly old: Endpoint | null }) {
  return (
    <>
      <label className="field">
        URL
        <input
          name="url"
          type="url"
          maxLength={2000}
          required={old === null}
          autoComplete="off"
          spellCheck={false}
          {...(old && { 'aria-describedby': 'endpoint-url' })}
        />
      </label>
      {old && (
        <p id="endpoint-url" className="quiet digest">
          Empty: it stays as it is{old.url && `, ${old.url}`}
        </p>
      )}
    </>
  )
}

interface NumberFieldProps {
  readonly name: string
  readonly label: string
  readonly value: number
  readonly max: number
}

function NumberField({ name, label, value, max }: NumberFieldProps) {
  return (
    <label className="field">
      {label}
      <input name={name} type="number" min={1} max={max} defaultValue={value} required />
    </label>
  )
}

function commandOf(form: FormData): EndpointCommand {
  const [url = '', secret = ''] = ['url', 'secret'].map((name) => String(form.get(name) ?? '').trim())
  return {
    ...(url === '' ? {} : { url }),
    body: form.get('body') === 'raw' ? 'raw' : 'event',
    timeout_s: Number(form.get('timeout_s')),
    concurrency: Number(form.get('concurrency')),
    ...(secret === '' ? {} : { secret }),
  }
}

function headerOf({ name, value, isSecret }: HeaderDraft) {
  return { name: name.trim(), value, secret: isSecret }
}

export function NewSecret({ secret, onClose }: { readonly secret: string; readonly onClose: () => void }) {
  return (
    <div className="stack">
      <p role="status">
        <strong>Copy the signing secret now. It is shown this once.</strong>
      </p>
      <CopyField label="Signing secret" text={secret} />
      <p className="quiet">The receiver verifies webhook-signature with it, by a library of Standard Webhooks.</p>
      <p className="actions">
        <button type="button" className="button main-button" onClick={onClose}>
          Done
        </button>
      </p>
    </div>
  )
}

interface DialogProps {
  readonly subscription: string
  readonly onClose: () => void
}

export function RotateEndpointSecret({ subscription, onClose }: DialogProps) {
  const api = useApi()
  const queryClient = useQueryClient()
  const rotate = useMutation({
    mutationFn: (form: FormData) => {
      const secret = String(form.get('secret')).trim()
      const overlap = overlapSeconds(String(form.get('overlap')))
      return api.call('POST /v1/inbox/subscriptions/{name}/endpoint/secret', {
        path: { name: subscription },
        body: { ...(secret === '' ? {} : { secret }), ...(overlap === null ? {} : { overlap_s: overlap }) },
      })
    },
    onSuccess: async (answer) => {
      await queryClient.invalidateQueries({ queryKey: ['endpoints'] })
      if (answer.endpoint.secret === undefined) onClose()
    },
    // Secrets must not stay in memory.
    gcTime: 0,
  })
  const secret = rotate.data?.endpoint.secret
  return (
    <Dialog title="Rotate the signing secret" onClose={onClose}>
      {secret !== undefined ? (
        <NewSecret secret={secret} onClose={onClose} />
      ) : (
        <form
          className="stack"
          onSubmit={(event) => {
            event.preventDefault()
            rotate.mutate(new FormData(event.currentTarget))
          }}
        >
          <p>The new secret signs at once. While the old one works, each delivery has both signatures.</p>
          <SecretField
            label="New secret"
            maxLength={MAX_SECRET}
            help={`Empty: Intray makes one and shows it once. ${SECRET_FORM}`}
          />
          <OverlapField what="The old secret" />
          {rotate.isError && <ErrorNotice error={rotate.error} />}
          <p className="actions">
            <button type="submit" className="button main-button" disabled={rotate.isPending}>
              Rotate
            </button>
            <button type="button" className="button" onClick={onClose}>
              Cancel
            </button>
          </p>
        </form>
      )}
    </Dialog>
  )
}

export function RemoveEndpoint({ subscription, onClose }: DialogProps) {
  const api = useApi()
  const queryClient = useQueryClient()
  const remove = useMutation({
    mutationFn: () => api.call('DELETE /v1/inbox/subscriptions/{name}/endpoint', { path: { name: subscription } }),
    onSuccess: () => queryClient.invalidateQueries({ queryKey: ['endpoints'] }),
  })
  return (
    <Confirm
      title={`Remove the endpoint of ${subscription}?`}
      verb="Remove"
      isDanger
      isPending={remove.isPending}
      error={remove.error}
      onConfirm={() => remove.mutate()}
      onClose={onClose}
    >
      <p>Nothing is delivered any more, and its signing secret is gone. Events wait for processors that claim.</p>
    </Confirm>
  )
}
