// The subscriptions of the tenant.

import { useQuery } from '@tanstack/react-query'
import { useApi } from '../session.tsx'

export function useSubscriptions() {
  const api = useApi()
  return useQuery({
    queryKey: ['subscriptions', api.tenant],
    queryFn: () => api.call('GET /v1/inbox/subscriptions'),
    refetchInterval: 10_000,
  })
}
