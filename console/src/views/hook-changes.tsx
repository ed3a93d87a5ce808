// Dialogs that change a hook: a new address, a new secret, disable and enable.

import { useMutation, useQueryClient } from '@tanstack/react-query'
import { type FormEvent, type ReactNode, useState } from 'react'
import type { HookDetail, RotateHookCommand } from '../../../kits/typescript/src/schema.ts'
import { addressFor, navigate } from '../router.tsx'
import { useApi, useMayChange, useSession } from '../session.tsx'
import { ErrorNotice, Time } from '../ui/controls.tsx'
import { Dialog } from '../ui/dialog.tsx'
import { Confirm, LifetimeField, NotConfirmed, OverlapField, SecretField } from './credential-parts.tsx'
import { MAX_SECRET } from './hook-create.tsx'
import { HookSetup } from './hook-setup.tsx'

interface ChangeProps {
  readonly hook: HookDetail
  readonly onClose: () => void
}

/** The new hook has a page of its own: leads to it in the end. */
export function RotateAddress({ hook, onClose }: ChangeProps) {
  const { tenant } = useSession()
  const rotate = useRotate(hook)
  const next = rotate.data?.hook
  const close = next ? () => navigate(addressFor(tenant, 'hooks', next.key_id)) : onClose
  return (
    <Dialog title={next ? 'The new address' : 'Change the address'} onClose={close}>
      {next ? (
        <Rotated hook={next} isInForce={rotate.data?.in_force ?? false} onDone={close}>
          Give the vendor the new address.
        </Rotated>
      ) : (
        <form
          className="stack"
          onSubmit={(event) => {
            event.preventDefault()
            rotate.mutate({ what: 'address', ...chosen(event, 'overlap'), ...chosen(event, 'lifetime', 'expires_in') })
          }}
        >
          <p>Creates a new hook with the same recipe, secrets and limits, and another address.</p>
          <OverlapField what="The old address" />
          {hook.expires_at && (
            <LifetimeField label="The new address expires" otherwise="when the old one was to expire" />
          )}
          {rotate.isError && <ErrorNotice error={rotate.error} />}
          <Buttons verb="Change the address" isPending={rotate.isPending} onClose={onClose} />
        </form>
      )}
    </Dialog>
  )
}

export function RotateSecret({ hook, onClose }: ChangeProps) {
  const rotate = useRotate(hook)
  const isFirst = hook.secrets?.length === 0
  const ofVendor = hook.setup?.secret?.from === 'vendor'
  const name = hook.setup?.secret?.name
  // It stays open as it is while the list behind it is loaded anew.
  const [title] = useState(isFirst ? 'Enter the secret' : 'Change the secret')
  const next = rotate.data
  const submit = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault()
    const secret = String(new FormData(event.currentTarget).get('secret')).trim()
    rotate.mutate({ what: 'secret', ...(secret === '' ? {} : { secret }), ...chosen(event, 'overlap') })
  }
  return (
    <Dialog title={title} onClose={onClose}>
      {next ? (
        <Rotated hook={next.hook} isInForce={next.in_force} onDone={onClose}>
          {next.hook.secret ? 'Give the vendor the new secret.' : 'Requests are checked with this secret.'}
        </Rotated>
      ) : (
        <form className="stack" onSubmit={submit}>
          <SecretField
            label={name ?? 'Secret'}
            maxLength={MAX_SECRET}
            isRequired={ofVendor}
            help={
              ofVendor
                ? 'As the vendor shows it. It is stored encrypted.'
                : 'Empty: Intray makes one and shows it once. It is stored encrypted.'
            }
          />
          {!isFirst && <OverlapField what="The old secret" />}
          {rotate.isError && <ErrorNotice error={rotate.error} />}
          <Buttons verb={title} isPending={rotate.isPending} onClose={onClose} />
        </form>
      )}
    </Dialog>
  )
}

function useRotate({ key_id: keyId }: HookDetail) {
  const api = useApi()
  const queryClient = useQueryClient()
  return useMutation({
    mutationFn: (body: RotateHookCommand) =>
      api.call('POST /v1/console/hooks/{key_id}/rotate', { path: { key_id: keyId }, body }),
    onSuccess: () => queryClient.invalidateQueries({ queryKey: ['hooks'] }),
    // A secret must not stay in memory.
    gcTime: 0,
  })
}

/** A field of the form as one of the command; left out if nothing is chosen. */
function chosen(
  { currentTarget }: FormEvent<HTMLFormElement>,
  field: string,
  as: 'overlap' | 'expires_in' = 'overlap',
): Pick<RotateHookCommand, 'overlap' | 'expires_in'> {
  const value = new FormData(currentTarget).get(field)
  return typeof value === 'string' && value !== '' ? { [as]: value } : {}
}

interface ButtonsProps {
  readonly verb: string
  readonly isPending: boolean
  readonly onClose: () => void
}

function Buttons({ verb, isPending, onClose }: ButtonsProps) {
  return (
    <p className="actions">
      <button type="submit" className="button main-button" disabled={isPending}>
        {verb}
      </button>
      <button type="button" className="button" onClick={onClose}>
        Cancel
      </button>
    </p>
  )
}

interface RotatedProps {
  readonly hook: HookDetail
  readonly isInForce: boolean
  readonly onDone: () => void
  readonly children: ReactNode
}

function Rotated({ hook, isInForce, onDone, children }: RotatedProps) {
  return (
    <div className="stack">
      <p role="status">
        <strong>
          {children} {hook.secret && 'It is shown this once.'}
        </strong>
      </p>
      <HookSetup hook={hook} secret={hook.secret ?? null} />
      {!isInForce && <p className="warning">A running server has not confirmed the change yet. Look at its log.</p>}
      <p className="actions">
        <button type="button" className="button main-button" onClick={onDone}>
          Done
        </button>
      </p>
    </div>
  )
}

export function DisableHook({ hook, onClose }: ChangeProps) {
  const api = useApi()
  const queryClient = useQueryClient()
  const disable = useMutation({
    mutationFn: () => api.call('POST /v1/console/hooks/{key_id}/disable', { path: { key_id: hook.key_id } }),
    onSuccess: async ({ in_force: isInForce }) => {
      await queryClient.invalidateQueries({ queryKey: ['hooks'] })
      if (isInForce) onClose()
    },
  })
  if (disable.isSuccess) {
    return (
      <Dialog title="The hook is disabled" onClose={onClose}>
        <NotConfirmed what="this hook" onClose={onClose} />
      </Dialog>
    )
  }
  return (
    <Confirm
      title="Disable this hook?"
      verb="Disable"
      isDanger
      isPending={disable.isPending}
      error={disable.error}
      onConfirm={() => disable.mutate()}
      onClose={onClose}
    >
      <p>
        What the vendor sends will be refused.{' '}
        {hook.last_used_at ? (
          <>
            It was used <Time at={hook.last_used_at} short />.
          </>
        ) : (
          'It was never used.'
        )}
      </p>
    </Confirm>
  )
}

export function EnableHook({ hook }: { readonly hook: HookDetail }) {
  const api = useApi()
  const mayChange = useMayChange()
  const queryClient = useQueryClient()
  const enable = useMutation({
    mutationFn: () => api.call('POST /v1/console/hooks/{key_id}/enable', { path: { key_id: hook.key_id } }),
    onSuccess: () => queryClient.invalidateQueries({ queryKey: ['hooks'] }),
  })
  return (
    <>
      <button
        type="button"
        className="button"
        disabled={!mayChange || enable.isPending}
        onClick={() => enable.mutate()}
      >
        Enable
      </button>
      {enable.isError && <ErrorNotice error={enable.error} />}
    </>
  )
}
