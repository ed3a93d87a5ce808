// The recipes that Intray brings.

import { useQuery } from '@tanstack/react-query'
import { useApi } from '../session.tsx'

/** They change with the version of the server only. */
export function useRecipes() {
  const api = useApi()
  return useQuery({
    queryKey: ['recipes'],
    queryFn: () => api.call('GET /v1/console/recipes'),
    staleTime: 3_600_000,
  })
}
