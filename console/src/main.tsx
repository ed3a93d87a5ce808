// Entry point of the page.

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
    // An expired session leads to the sign-in page from every view.
    onError: (error, query) => {
      if (error instanceof ApiError && error.status === 401 && query.queryKey[0] !== 'session') {
        client.setQueryData(['session'], null)
        // The next operator must not see cached data of this one.
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
