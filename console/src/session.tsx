// The signed-in operator and the chosen tenant. Views call the API through this context, which adds the tenant to every
// call.

import { createContext, useContext } from 'react'
import { type Answer, type CallOptions, call, callText, type OperationName, type Tenant } from './api/client.ts'
import type { Operator } from '../../kits/typescript/src/schema.ts'

export interface ConsoleSession {
  readonly operator: Operator
  readonly tenant: Tenant
  readonly tenants: readonly Tenant[]
}

const SessionContext = createContext<ConsoleSession | null>(null)
export const SessionProvider = SessionContext.Provider

export function useSession(): ConsoleSession {
  const session = useContext(SessionContext)
  if (!session) throw new Error('used outside of SessionProvider')
  return session
}

type TenantCall = <Name extends OperationName>(name: Name, options?: CallOptions<Name>) => Promise<Answer<Name>>

/** API calls for the chosen tenant. */
export function useApi(): { readonly tenant: Tenant; readonly call: TenantCall; readonly text: typeof callText } {
  const { tenant } = useSession()
  return {
    tenant,
    call: (name, options = {}) => call(name, { tenant, ...options }),
    text: (name, options = {}) => callText(name, { tenant, ...options }),
  }
}

/** For disabling controls; the server enforces it. */
export function useMayChange(): boolean {
  return useSession().operator.role === 'admin'
}
