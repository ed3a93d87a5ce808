// Who is signed in and which tenant is looked at. Every view asks here and calls the API through it, so that the tenant can
// be forgotten nowhere.

import { createContext, useContext } from 'react'
import { type Answer, type CallOptions, call, callText, type OperationName, type Tenant } from './api/client.ts'
import type { Operator } from './api/schema.ts'

export interface Desk {
  readonly operator: Operator
  readonly tenant: Tenant
  readonly tenants: readonly Tenant[]
}

const DeskContext = createContext<Desk | null>(null)
export const DeskProvider = DeskContext.Provider

export function useDesk(): Desk {
  const desk = useContext(DeskContext)
  if (!desk) throw new Error('nobody is signed in here')
  return desk
}

type TenantCall = <Name extends OperationName>(name: Name, options?: CallOptions<Name>) => Promise<Answer<Name>>

/** Calls on behalf of the tenant that is looked at. */
export function useApi(): { readonly tenant: Tenant; readonly call: TenantCall; readonly text: typeof callText } {
  const { tenant } = useDesk()
  return {
    tenant,
    call: (name, options = {}) => call(name, { tenant, ...options }),
    text: (name, options = {}) => callText(name, { tenant, ...options }),
  }
}

/** Viewers look; admins change. The server decides, this only says so early. */
export function useMayChange(): boolean {
  return useDesk().operator.role === 'admin'
}
