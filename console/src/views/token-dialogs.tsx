// Dialogs that create or rotate a token. They show it once, with programs that use it.

import { useMutation, useQueryClient } from '@tanstack/react-query'
import { type FormEvent, useState } from 'react'
import type { Token, TokenAnswer, TokenCommand } from '../../../kits/typescript/src/schema.ts'
import { useApi } from '../session.tsx'
import { CodeBlock, ErrorNotice } from '../ui/controls.tsx'
import { Dialog } from '../ui/dialog.tsx'
import { Tabs } from '../ui/tabs.tsx'
import { LifetimeField, OverlapField } from './credential-parts.tsx'
import { snippetsFor } from './snippets.ts'

export function CreateToken({ onClose }: { readonly onClose: () => void }) {
  const api = useApi()
  const queryClient = useQueryClient()
  const create = useMutation({
    mutationFn: (body: TokenCommand) => api.call('POST /v1/console/tokens', { body }),
    onSuccess: () => queryClient.invalidateQueries({ queryKey: ['tokens'] }),
  })
  const submit = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault()
    const form = new FormData(event.currentTarget)
    const lifetime = String(form.get('lifetime'))
    create.mutate({
      scope: String(form.get('scope')).trim(),
      label: String(form.get('label')).trim(),
      ...(lifetime === '' ? {} : { expires_in: lifetime }),
    })
  }
  return (
    <Dialog title="Create a token" onClose={onClose}>
      {create.isSuccess ? (
        <NewToken token={create.data.token} onClose={onClose} />
      ) : (
        <form className="stack" onSubmit={submit}>
          <label className="field">
            Label
            <input name="label" placeholder="contact form of example.org" maxLength={200} />
          </label>
          <label className="field">
            Scope
            <input name="scope" defaultValue="cf" pattern="[a-z0-9][a-z0-9_.:\-]{0,63}" aria-describedby="scope-help" />
          </label>
          <p id="scope-help" className="quiet">
            processor reads and processes, and may not send. Any other scope sends and names the integration, such as cf
            for a form plugin.
          </p>
          <LifetimeField />
          {create.isError && <ErrorNotice error={create.error} />}
          <p className="actions">
            <button type="submit" className="button main-button" disabled={create.isPending}>
              Create
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

export function RotateToken({ token, onClose }: { readonly token: Token; readonly onClose: () => void }) {
  const api = useApi()
  const queryClient = useQueryClient()
  const rotate = useMutation({
    mutationFn: (overlap: string) =>
      api.call('POST /v1/console/tokens/{key_id}/rotate', {
        path: { key_id: token.key_id },
        body: overlap === '' ? {} : { overlap },
      }),
    onSuccess: () => queryClient.invalidateQueries({ queryKey: ['tokens'] }),
  })
  return (
    <Dialog title={`Rotate ${token.key_id}`} onClose={onClose}>
      {rotate.isSuccess ? (
        <NewToken token={rotate.data.token} onClose={onClose} />
      ) : (
        <form
          className="stack"
          onSubmit={(event) => {
            event.preventDefault()
            rotate.mutate(String(new FormData(event.currentTarget).get('overlap')))
          }}
        >
          <p>Creates a new token with the same scope.</p>
          <OverlapField what="The old token" />
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

interface NewTokenProps {
  readonly token: TokenAnswer['token']
  readonly onClose: () => void
}

function NewToken({ token: { scope, secret = '' }, onClose }: NewTokenProps) {
  const snippets = snippetsFor(scope, window.location.origin, secret)
  const [chosen, setChosen] = useState(snippets[0]!.name)
  const verb = scope === 'processor' ? 'Processing' : 'Sending'
  return (
    <div className="stack">
      <p role="status">
        <strong>Copy the token now. It is shown this once.</strong>
      </p>
      <CodeBlock label="The token" text={secret} />
      <Tabs
        label={`${verb} with it`}
        choices={snippets.map(({ name }) => ({ name, label: name }))}
        chosen={chosen}
        onChoose={setChosen}
      >
        <CodeBlock label={`${verb} with ${chosen}`} text={snippets.find(({ name }) => name === chosen)?.text ?? ''} />
      </Tabs>
      <p className="actions">
        <button type="button" className="button main-button" onClick={onClose}>
          Done
        </button>
      </p>
    </div>
  )
}
