// The tokens view: lists the tokens of the tenant, creates, rotates, disables and enables them.

import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import type { Token } from '../../../kits/typescript/src/schema.ts'
import { useApi, useMayChange } from '../session.tsx'
import { SafeText } from '../text/safe-text.tsx'
import { Empty, Loading, Time, ErrorNotice } from '../ui/controls.tsx'
import { Dialog } from '../ui/dialog.tsx'
import { NotConfirmed } from './credential-parts.tsx'
import { CreateToken, RotateToken } from './token-dialogs.tsx'

type Open = { readonly what: 'create' } | { readonly what: 'rotate' | 'disable'; readonly token: Token }

export function Tokens() {
  const api = useApi()
  const mayChange = useMayChange()
  const [open, setOpen] = useState<Open | null>(null)
  const tokens = useQuery({
    queryKey: ['tokens', api.tenant],
    queryFn: () => api.call('GET /v1/console/tokens', { query: { limit: 200 } }),
    refetchInterval: 10_000,
  })
  const close = () => setOpen(null)
  return (
    <div className="page">
      <p className="actions">
        <button
          type="button"
          className="button main-button"
          disabled={!mayChange}
          onClick={() => setOpen({ what: 'create' })}
        >
          Create a token
        </button>
        {!mayChange && <span className="quiet">Only admins may change tokens.</span>}
      </p>
      {tokens.isError ? (
        <ErrorNotice error={tokens.error} onRetry={() => void tokens.refetch()} />
      ) : tokens.isPending ? (
        <Loading what="tokens" />
      ) : tokens.data.tokens.length === 0 ? (
        <NoTokens />
      ) : (
        <TokenTable tokens={tokens.data.tokens} onOpen={setOpen} />
      )}
      {open?.what === 'create' && <CreateToken onClose={close} />}
      {open?.what === 'rotate' && <RotateToken token={open.token} onClose={close} />}
      {open?.what === 'disable' && <DisableToken token={open.token} onClose={close} />}
    </div>
  )
}

function NoTokens() {
  const { tenant } = useApi()
  return (
    <Empty
      title="This tenant has no token"
      command={`./intray token create --account ${tenant.accountId} --company ${tenant.companyId} --scope cf --label 'contact form'`}
    />
  )
}

interface TokenTableProps {
  readonly tokens: readonly Token[]
  readonly onOpen: (open: Open) => void
}

function TokenTable({ tokens, onOpen }: TokenTableProps) {
  return (
    <table className="wide-table">
      <thead>
        <tr>
          <th scope="col">Token</th>
          <th scope="col">Scope</th>
          <th scope="col">State</th>
          <th scope="col">Last used</th>
          <th scope="col">Expires</th>
          <th scope="col">Actions</th>
        </tr>
      </thead>
      <tbody>
        {tokens.map((token) => (
          <TokenRow key={token.key_id} token={token} onOpen={onOpen} />
        ))}
      </tbody>
    </table>
  )
}

function TokenRow({ token, onOpen }: { readonly token: Token; readonly onOpen: (open: Open) => void }) {
  const api = useApi()
  const mayChange = useMayChange()
  const queryClient = useQueryClient()
  const enable = useMutation({
    mutationFn: () => api.call('POST /v1/console/tokens/{key_id}/enable', { path: { key_id: token.key_id } }),
    onSuccess: () => queryClient.invalidateQueries({ queryKey: ['tokens'] }),
  })
  return (
    <tr>
      <th scope="row">
        <code>{token.key_id}</code>
        {token.label && (
          <span className="quiet block">
            <SafeText text={token.label} maxLength={120} />
          </span>
        )}
        {token.rotated_from && <span className="quiet block">replaces {token.rotated_from}</span>}
      </th>
      <td data-label="Scope">{token.scope === '' ? '(none)' : token.scope}</td>
      <td data-label="State">{token.state}</td>
      <td data-label="Last used">{token.last_used_at ? <Time at={token.last_used_at} short /> : 'never'}</td>
      <td data-label="Expires">{token.expires_at ? <Time at={token.expires_at} short /> : 'never'}</td>
      <td className="actions">
        {token.state !== 'disabled' ? (
          <>
            <button
              type="button"
              className="button"
              disabled={!mayChange}
              aria-label={`Rotate ${token.key_id}`}
              onClick={() => onOpen({ what: 'rotate', token })}
            >
              Rotate
            </button>
            <button
              type="button"
              className="button"
              disabled={!mayChange}
              aria-label={`Disable ${token.key_id}`}
              onClick={() => onOpen({ what: 'disable', token })}
            >
              Disable
            </button>
          </>
        ) : (
          <button
            type="button"
            className="button"
            disabled={!mayChange || enable.isPending}
            aria-label={`Enable ${token.key_id}`}
            onClick={() => enable.mutate()}
          >
            Enable
          </button>
        )}
        {enable.isError && <ErrorNotice error={enable.error} />}
      </td>
    </tr>
  )
}

function DisableToken({ token, onClose }: { readonly token: Token; readonly onClose: () => void }) {
  const api = useApi()
  const queryClient = useQueryClient()
  const disable = useMutation({
    mutationFn: () => api.call('POST /v1/console/tokens/{key_id}/disable', { path: { key_id: token.key_id } }),
    onSuccess: async ({ in_force: isInForce }) => {
      await queryClient.invalidateQueries({ queryKey: ['tokens'] })
      if (isInForce) onClose()
    },
  })
  return (
    <Dialog title={disable.isSuccess ? `${token.key_id} is disabled` : `Disable ${token.key_id}?`} onClose={onClose}>
      {disable.isSuccess ? (
        <NotConfirmed what="this token" onClose={onClose} />
      ) : (
        <>
          <p>
            Requests with this token will be refused.{' '}
            {token.last_used_at ? (
              <>
                It was used <Time at={token.last_used_at} short />.
              </>
            ) : (
              'It was never used.'
            )}
          </p>
          {disable.isError && <ErrorNotice error={disable.error} />}
          <p className="actions">
            <button
              type="button"
              className="button danger-button"
              disabled={disable.isPending}
              onClick={() => disable.mutate()}
            >
              Disable
            </button>
            <button type="button" className="button" onClick={onClose}>
              Cancel
            </button>
          </p>
        </>
      )}
    </Dialog>
  )
}
