// Where the page begins.

import { QueryCache, QueryClient, QueryClientProvider } from '@tanstack/react-query'
import { StrictMode } from 'react'
import { createRoot } from 'react-dom/client'
import { ApiError } from './api/client.ts'
import { App } from './app.tsx'
import { applyTheme, storedTheme } from './ui/theme.ts'
import 'uplot/dist/uPlot.min.css'
import './styles/tokens.css'
import './styles/base.css'
import './styles/shell.css'
import './styles/parts.css'
import './styles/views.css'

applyTheme(storedTheme())

const client: QueryClient = new QueryClient({
  defaultOptions: {
    queries: { staleTime: 2000, retry: (failures, error) => !(error instanceof ApiError) && failures < 2 },
  },
  queryCache: new QueryCache({
    // Whoever's session is over is asked to sign in again, wherever they are.
    onError: (error, query) => {
      if (error instanceof ApiError && error.status === 401 && query.queryKey[0] !== 'session') {
        client.setQueryData(['session'], null)
        // What was looked at is not for whoever signs in next.
        client.removeQueries({ predicate: ({ queryKey }) => queryKey[0] !== 'session' })
      }
    },
  }),
})

createRoot(document.getElementById('root')!).render(
  <StrictMode>
    <QueryClientProvider client={client}>
      <App />
    </QueryClientProvider>
  </StrictMode>,
)
