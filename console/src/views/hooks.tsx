// The hooks view: addresses for vendors that can set no token. Lists the hooks of the tenant; one hook has a page of its own.

import { useInfiniteQuery } from '@tanstack/react-query'
import { useState } from 'react'
import type { Hook } from '../../../kits/typescript/src/schema.ts'
import { addressFor, Link, navigate, type ViewProps } from '../router.tsx'
import { useApi, useMayChange, useSession } from '../session.tsx'
import { SafeText } from '../text/safe-text.tsx'
import { Empty, ErrorNotice, Loading, Time } from '../ui/controls.tsx'
import { CreateHook } from './hook-create.tsx'
import { HookPage } from './hook-page.tsx'
import { HookState } from './hook-state.tsx'

export function Hooks({ id }: ViewProps) {
  return id === null ? <HookList /> : <HookPage key={id} keyId={id} />
}

function HookList() {
  const api = useApi()
  const { tenant } = useSession()
  const mayChange = useMayChange()
  const [isCreating, setCreating] = useState(false)
  const list = useInfiniteQuery({
    queryKey: ['hooks', api.tenant],
    queryFn: ({ pageParam }) =>
      api.call('GET /v1/console/hooks', {
        query: { limit: 100, ...(pageParam === null ? {} : { cursor: pageParam }) },
      }),
    initialPageParam: null as string | null,
    getNextPageParam: (page) => page.next,
    refetchInterval: 10_000,
  })
  const hooks = list.data?.pages.flatMap((page) => page.hooks) ?? []
  return (
    <div className="page">
      <p className="actions">
        <button type="button" className="button main-button" disabled={!mayChange} onClick={() => setCreating(true)}>
          Create a hook
        </button>
        <span className="quiet">
          {mayChange
            ? 'A hook is an address for a vendor that posts its own messages, such as Telegram, Stripe or a form plugin.'
            : 'Only admins may change hooks.'}
        </span>
      </p>
      {list.isError ? (
        <ErrorNotice error={list.error} onRetry={() => void list.refetch()} />
      ) : list.isPending ? (
        <Loading what="hooks" />
      ) : hooks.length === 0 ? (
        <NoHooks />
      ) : (
        <HookTable hooks={hooks} />
      )}
      {list.hasNextPage && (
        <p className="actions">
          <button
            type="button"
            className="button"
            disabled={list.isFetchingNextPage}
            onClick={() => void list.fetchNextPage()}
          >
            Show more
          </button>
        </p>
      )}
      {isCreating && (
        <CreateHook
          onClose={() => setCreating(false)}
          onDone={(keyId) => navigate(addressFor(tenant, 'hooks', keyId))}
        />
      )}
    </div>
  )
}

function NoHooks() {
  const { tenant } = useApi()
  return (
    <Empty
      title="This tenant has no hook"
      command={`./intray hook create --account ${tenant.accountId} --company ${tenant.companyId} --recipe telegram --name 'support bot'`}
    />
  )
}

function HookTable({ hooks }: { readonly hooks: readonly Hook[] }) {
  const { tenant } = useSession()
  return (
    <table className="wide-table">
      <thead>
        <tr>
          <th scope="col">Hook</th>
          <th scope="col">Recipe</th>
          <th scope="col">State</th>
          <th scope="col">Last used</th>
          <th scope="col">Expires</th>
        </tr>
      </thead>
      <tbody>
        {hooks.map((hook) => (
          <tr key={hook.key_id}>
            <th scope="row">
              <Link to={addressFor(tenant, 'hooks', hook.key_id)}>
                {hook.name === '' ? hook.key_id : <SafeText text={hook.name} maxLength={120} />}
              </Link>
              {hook.name !== '' && <code className="quiet block">{hook.key_id}</code>}
              {hook.rotated_from && <span className="quiet block">replaces {hook.rotated_from}</span>}
            </th>
            <td data-label="Recipe">{recipeName(hook.recipe)}</td>
            <td data-label="State">
              <HookState state={hook.state} />
            </td>
            <td data-label="Last used">{hook.last_used_at ? <Time at={hook.last_used_at} short /> : 'never'}</td>
            <td data-label="Expires">{hook.expires_at ? <Time at={hook.expires_at} short /> : 'never'}</td>
          </tr>
        ))}
      </tbody>
    </table>
  )
}

/** The digest of a custom recipe says nothing to a reader. */
function recipeName(recipe: string): string {
  const [name = recipe, version = ''] = recipe.split('/')
  return name === 'custom' ? `custom (${version.slice(0, 8)}…)` : name
}
