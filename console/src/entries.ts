// The views, in the order of the navigation.

import type { ViewName } from './router.tsx'

interface Entry {
  readonly view: ViewName
  readonly title: string
  readonly key: string
}

export const ENTRIES: readonly Entry[] = [
  { view: 'overview', title: 'Overview', key: 'o' },
  { view: 'events', title: 'Events', key: 'e' },
  { view: 'conversations', title: 'Conversations', key: 'c' },
  { view: 'refusals', title: 'Refusals', key: 'r' },
  { view: 'tokens', title: 'Tokens', key: 't' },
  { view: 'hooks', title: 'Hooks', key: 'h' },
  { view: 'queue', title: 'Queue', key: 'q' },
  { view: 'endpoints', title: 'Endpoints', key: 'n' },
  { view: 'try', title: 'Try it', key: 'y' },
]
