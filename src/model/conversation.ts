// A conversation: all events of a tenant with one channel_ref. Its id is the id of its first event.

import type { Tenant } from './principal.ts'

export interface Contact {
  readonly name: string | null
  readonly email: string | null
}

export interface Conversation extends Tenant {
  readonly id: number
  readonly channelRef: string
  readonly eventCount: number
  readonly firstReceivedAt: number
  readonly lastEventId: number
  readonly lastReceivedAt: number
  readonly firstContact: Contact
  readonly lastContact: Contact
  readonly lastSnippet: string | null
}
