// Made from api/openapi.yaml by scripts/api-types.ts (`npm run api -w @intray/client`). Not edited by hand.

export type AcceptedRefusal = {
  readonly ok: true
  readonly id: number
  readonly refusal_id: number
}

export type AckCommand = AckOne | AckList

export type AckList = {
  readonly events: readonly (LeasedEvent)[]
  readonly subscription?: SubscriptionName
}

export type AckOne = {
  readonly id: EventId
  readonly lease_id: LeaseId
  readonly subscription?: SubscriptionName
}

export type AuditEntry = {
  readonly id: string
  readonly at: Time
  readonly operator: string | null
  readonly action: "sign_in" | "sign_in_failed" | "sign_out" | "sign_out_everywhere" | "token_create" | "token_rotate" | "token_disable" | "token_enable" | "token_limit" | "token_import" | "hook_create" | "hook_rotate" | "hook_disable" | "hook_enable" | "hook_sample" | "erase" | "export" | "import" | "promote" | "requeue" | "refusal_accept" | "test_event" | "subscription_create" | "subscription_delete" | "operator_add" | "operator_password" | "operator_role" | "operator_remove" | "operator_disable" | "operator_enable" | "operator_link" | "retention_set" | "retention_delete"
  readonly tenant: Tenant | null
  readonly target: string | null
  readonly request_id: string | null
  readonly address: string | null
}

export type AuditPage = {
  readonly ok: true
  readonly entries: readonly (AuditEntry)[]
  readonly next: Next
}

export type ChangedEndpoint = {
  readonly ok: true
  readonly endpoint: EndpointWithSecret
}

export type ChangedHook = {
  readonly ok: true
  readonly hook: HookDetail
  readonly in_force: boolean
}

export type ChangedToken = {
  readonly ok: true
  readonly token: NewToken
  readonly in_force: boolean
}

export type ClaimCommand = {
  readonly limit?: number
  readonly lease_s?: number
  readonly wait_s?: number
  readonly ordered?: boolean
  readonly subscription?: SubscriptionName
  readonly filter?: {
    readonly channel_ref?: string
  }
}

export type ClaimedEvent = {
  readonly id: EventId
  readonly lease_id: LeaseId
  readonly lease_expires_at: string
  readonly attempts: number
  readonly conversation_id: number | null
  readonly channel_ref: string | null
  readonly source_ref: string | null
  readonly received_at: string
  readonly scope: Scope
  readonly key_id: string
  readonly traceparent: string | null
  readonly content_type: string
  readonly size: number
  readonly sha256: string | null
  readonly payload?: Readonly<Record<string, unknown>> | readonly (unknown)[] | string | number | boolean | null
  readonly payload_base64?: string
  readonly payload_missing?: "erased" | "damaged"
}

export type ClaimedEvents = {
  readonly ok: true
  readonly events: readonly (ClaimedEvent)[]
}

export type Contact = {
  readonly name: string | null
  readonly email: string | null
}

export type Conversation = {
  readonly id: EventId
  readonly channel_ref: string
  readonly event_count: number
  readonly unprocessed: number
  readonly first_received_at: Time
  readonly last_event_id: EventId
  readonly last_received_at: Time
  readonly first_contact: Contact
  readonly last_contact: Contact
  readonly last_snippet: string | null
}

export type ConversationAnswer = {
  readonly ok: true
  readonly conversation: Conversation
  readonly index_lag?: IndexLag
}

export type ConversationPage = {
  readonly ok: true
  readonly conversations: readonly (Conversation)[]
  readonly next: Next
  readonly index_lag?: IndexLag
}

export type CreatedSubscription = {
  readonly ok: true
  readonly created: boolean
  readonly subscription: Subscription
}

export type Dead = boolean

export type Delay = number

export type DeletedSubscription = {
  readonly ok: true
  readonly name: string
}

export type Delivery = {
  readonly subscription: string
  readonly state: DeliveryState
  readonly attempts: number
  readonly available_at: string | null
  readonly lease_expires_at: string | null
  readonly claimed_by: string | null
  readonly settled_at: string | null
  readonly history: readonly (HistoryEntry)[]
}

export type DeliveryState = "pending" | "leased" | "done" | "dead"

export type Endpoint = {
  readonly id: string
  readonly subscription: string
  readonly state: "active" | "paused" | "disabled" | "open" | "half_open" | "unreadable"
  readonly url: string | null
  readonly body: "event" | "raw"
  readonly timeout_s: number
  readonly concurrency: number
  readonly headers: readonly (EndpointHeader)[]
  readonly secrets: readonly (EndpointSecret)[]
  readonly disabled_reason: string | null
  readonly circuit: EndpointCircuit
  readonly created_at: string
  readonly changed_at: string
}

export type EndpointAttempt = {
  readonly at: string
  readonly event_id: EventId
  readonly attempt: number
  readonly status: number | null
  readonly failure: string | null
  readonly ms: number
}

export type EndpointAttempts = {
  readonly ok: true
  readonly attempts: readonly (EndpointAttempt)[]
}

export type EndpointCircuit = {
  readonly opened_at: string | null
  readonly next_try_at: string | null
  readonly trips: number
}

export type EndpointCommand = {
  readonly url?: string | null
  readonly body?: "event" | "raw" | null
  readonly timeout_s?: number | null
  readonly concurrency?: number | null
  readonly headers?: readonly (EndpointHeaderCommand)[] | null
  readonly secret?: string | null
}

export type EndpointHeader = {
  readonly name: string
  readonly value: string | null
  readonly secret: boolean
}

export type EndpointHeaderCommand = {
  readonly name: string
  readonly value: string
  readonly secret?: boolean | null
}

export type EndpointRotation = {
  readonly overlap_s?: number | null
  readonly secret?: string | null
}

export type EndpointSecret = {
  readonly created_at: string
  readonly ends_at: string | null
}

export type EndpointSummary = {
  readonly count: number
  readonly failed: number
  readonly p50_ms: number | null
  readonly p95_ms: number | null
  readonly last_delivered_at: string | null
  readonly last_failed_at: string | null
}

export type EndpointTest = {
  readonly ok: true
  readonly test: EndpointTestResult
}

export type EndpointTestResult = {
  readonly webhook_id: string
  readonly status: number | null
  readonly failure: string | null
  readonly reason: string | null
  readonly ms: number
  readonly body: string
}

export type EndpointWithSecret = {
  readonly id: string
  readonly subscription: string
  readonly state: "active" | "paused" | "disabled" | "open" | "half_open" | "unreadable"
  readonly url: string | null
  readonly body: "event" | "raw"
  readonly timeout_s: number
  readonly concurrency: number
  readonly headers: readonly (EndpointHeader)[]
  readonly secrets: readonly (EndpointSecret)[]
  readonly disabled_reason: string | null
  readonly circuit: EndpointCircuit
  readonly created_at: string
  readonly changed_at: string
  readonly secret?: string
}

export type EndpointWithSummary = {
  readonly id: string
  readonly subscription: string
  readonly state: "active" | "paused" | "disabled" | "open" | "half_open" | "unreadable"
  readonly url: string | null
  readonly body: "event" | "raw"
  readonly timeout_s: number
  readonly concurrency: number
  readonly headers: readonly (EndpointHeader)[]
  readonly secrets: readonly (EndpointSecret)[]
  readonly disabled_reason: string | null
  readonly circuit: EndpointCircuit
  readonly created_at: string
  readonly changed_at: string
  readonly recent: EndpointSummary
}

export type Endpoints = {
  readonly ok: true
  readonly endpoints: readonly (Endpoint)[]
}

export type EraseCommand = {
  readonly event?: number | null
  readonly conversation?: number | null
  readonly email?: string | null
  readonly source_ref?: string | null
  readonly dry_run?: boolean | null
  readonly cursor?: number | null
}

export type Erased = {
  readonly ok: true
  readonly id?: EventId
  readonly dry_run: boolean
  readonly messages: number
  readonly events: number
  readonly refusals: number
  readonly next: number | null
  readonly pending: boolean
  readonly index_lag?: IndexLag
}

export type Event = {
  readonly id: EventId
  readonly kind: "event" | "revision"
  readonly state: EventState
  readonly last_error?: string | null
  readonly revises: number | null
  readonly promoted_from: number | null
  readonly received_at: Time
  readonly source_ref: string | null
  readonly channel_ref: string | null
  readonly conversation_id: number | null
  readonly contact: Contact
  readonly message_type: string | null
  readonly snippet: string | null
  readonly warnings: readonly (Warning)[]
  readonly unindexed: string | null
  readonly key_id: string
  readonly scope: Scope
  readonly origin: "intake" | "accepted_refusal" | "promotion" | "test"
  readonly size: number
  readonly sha256: string | null
  readonly erased_at: string | null
}

export type EventAnswer = {
  readonly ok: true
  readonly event: EventDetail
  readonly payload: Readonly<Record<string, unknown>> | readonly (unknown)[] | string | number | boolean | null
  readonly payload_base64?: string
  readonly index_lag?: IndexLag
}

export type EventDetail = {
  readonly id: EventId
  readonly kind: "event" | "revision"
  readonly state: EventState
  readonly revises: number | null
  readonly promoted_from: number | null
  readonly received_at: Time
  readonly source_ref: string | null
  readonly channel_ref: string | null
  readonly conversation_id: number | null
  readonly contact: Contact
  readonly message_type: string | null
  readonly snippet: string | null
  readonly warnings: readonly (Warning)[]
  readonly unindexed: string | null
  readonly key_id: string
  readonly scope: Scope
  readonly origin: "intake" | "accepted_refusal" | "promotion" | "test"
  readonly size: number
  readonly sha256: string
  readonly erased_at: string | null
  readonly route: string
  readonly content_type: string
  readonly idempotency_key: string | null
  readonly request_id: string
  readonly traceparent: string | null
  readonly user_agent: string | null
  readonly remote_addr: string | null
  readonly recipe: string | null
  readonly resends: number
  readonly revisions: number
  readonly last_seen_at: Time
}

export type EventHistory = {
  readonly ok: true
  readonly id: EventId
  readonly deliveries: readonly (Delivery)[]
}

export type EventId = number

export type EventPage = {
  readonly ok: true
  readonly events: readonly (Event)[]
  readonly next: Next
  readonly partial?: true
  readonly index_lag?: IndexLag
}

export type EventState = "pending" | "leased" | "done" | "dead" | null

export type ExtendCommand = ExtendOne | ExtendList

export type ExtendList = {
  readonly events: readonly (LeasedEvent)[]
  readonly lease_s?: number
  readonly subscription?: SubscriptionName
}

export type ExtendOne = {
  readonly id: EventId
  readonly lease_id: LeaseId
  readonly lease_s?: number
  readonly subscription?: SubscriptionName
}

export type FollowedEvent = {
  readonly id: number
  readonly kind: "event" | "revision"
  readonly revises: number | null
  readonly received_at: string
  readonly source_ref: string | null
  readonly channel_ref: string | null
  readonly conversation_id: number | null
  readonly contact: {
    readonly name: string | null
    readonly email: string | null
  }
  readonly message_type: string | null
  readonly snippet: string | null
  readonly size: number
  readonly sha256: string | null
  readonly erased_at: string | null
  readonly scope: Scope
  readonly key_id: string
  readonly request_id: RequestId
}

export type HistoryEntry = {
  readonly at: string
  readonly what: "released" | "expired" | "requeued"
  readonly state: DeliveryState
  readonly attempts: number
  readonly key_id: string | null
  readonly error: string | null
}

export type Hook = {
  readonly key_id: string
  readonly name: string
  readonly recipe: string
  readonly scope: string
  readonly state: "active" | "disabled" | "expired"
  readonly created_at: Time
  readonly expires_at: string | null
  readonly disabled_at: string | null
  readonly last_used_at: string | null
  readonly rotated_from: string | null
  readonly rate_limit: string | null
}

export type HookAnswer = {
  readonly ok: true
  readonly hook: HookDetail
}

export type HookCommand = {
  readonly recipe: string
  readonly definition?: string
  readonly name?: string
  readonly scope?: string
  readonly secret?: string
  readonly expires_in?: string
  readonly rate_limit?: string
  readonly max_body_bytes?: string
}

export type HookDeliveries = {
  readonly ok: true
  readonly deliveries: readonly (HookDelivery)[]
}

export type HookDelivery = {
  readonly received_at: Time
  readonly verdict: string
  readonly kind: "event" | "revision" | null
  readonly is_sample: boolean
  readonly event_id: number | null
  readonly refusal_id: number | null
  readonly reason: string | null
  readonly request_id: string
  readonly recipe: string | null
  readonly source_ref: string | null
  readonly channel_ref: string | null
  readonly content_type: string
  readonly size: number
  readonly contact: Contact
  readonly message_type: string | null
  readonly snippet: string | null
  readonly warnings: readonly (Warning)[]
  readonly is_indexed: boolean
}

export type HookDetail = {
  readonly key_id: string
  readonly name: string
  readonly recipe: string
  readonly scope: string
  readonly state: "active" | "disabled" | "expired"
  readonly created_at: Time
  readonly expires_at: string | null
  readonly disabled_at: string | null
  readonly last_used_at: string | null
  readonly rotated_from: string | null
  readonly rate_limit: string | null
  readonly title: string | null
  readonly max_body_bytes: number | null
  readonly url: string | null
  readonly verify_token: string | null
  readonly signature: {
    readonly kind: "none" | "header" | "hmac" | "twilio"
    readonly needs_secret: boolean
  } | null
  readonly secrets: readonly ({
    readonly until: string | null
  })[] | null
  readonly setup: {
    readonly secret: {
      readonly from: "intray" | "vendor"
      readonly name: string
    } | null
    readonly steps: readonly (string)[]
  } | null
  readonly secret?: string | null
}

export type HookPage = {
  readonly ok: true
  readonly hooks: readonly (Hook)[]
  readonly next: Next
}

export type HookReceipt = Readonly<Record<string, unknown>>

export type HookSample = {
  readonly ok: true
  readonly id: number
  readonly key_id: string
  readonly read: {
    readonly source_ref: string | null
    readonly channel_ref: string | null
    readonly is_batch: boolean
    readonly contact: Contact
    readonly message_type: string | null
    readonly snippet: string | null
    readonly warnings: readonly (Warning)[]
  }
}

export type HookSampleCommand = {
  readonly body?: string
  readonly content_type?: string
}

export type InboxEvent = {
  readonly source_ref?: string | number | null
  readonly channel_ref?: string | number | null
  readonly contact?: {
    readonly name?: string
    readonly email?: string
  }
  readonly message?: {
    readonly type?: string
    readonly text?: string
  }
  readonly meta?: {
    readonly form_id?: number
    readonly page_url?: string
  }
}

export type IndexLag = number

export type LeaseId = string

export type LeasedEvent = {
  readonly id: EventId
  readonly lease_id: LeaseId
}

export type NewToken = {
  readonly key_id: string
  readonly scope: string
  readonly label: string
  readonly state: "active" | "disabled" | "expired"
  readonly created_at: Time
  readonly expires_at: string | null
  readonly disabled_at: string | null
  readonly last_used_at: string | null
  readonly rotated_from: string | null
  readonly secret?: string
}

export type Next = string | null

export type Operator = {
  readonly name: string
  readonly role: "viewer" | "admin"
  readonly tenants: "all" | readonly (Tenant)[]
}

export type Overview = {
  readonly ok: true
  readonly at: Time
  readonly intake: {
    readonly minutes: readonly (TrafficMinute)[]
  }
  readonly today: TrafficCounts
  readonly refusals: readonly (RefusalCount)[]
  readonly queue: QueueDepth
  readonly oldest_pending_at: string | null
  readonly senders: readonly (Sender)[]
  readonly index_lag: number
}

export type ProcessingError = string

export type Promotion = {
  readonly ok: true
  readonly id: EventId
  readonly promoted_from: EventId
}

export type QueueDepth = {
  readonly pending: number
  readonly leased: number
  readonly dead: number
  readonly counted_up_to: number
}

export type Receipt = {
  readonly ok: true
  readonly id: number
  readonly duplicate?: true
  readonly conflict?: true
}

export type Recipe = {
  readonly recipe: string
  readonly name: string
  readonly version: string
  readonly title: string
  readonly bodies: readonly (string)[]
  readonly signature: {
    readonly kind: "none" | "header" | "hmac" | "twilio"
    readonly needs_secret: boolean
  } | null
  readonly has_challenge: boolean
  readonly source_ref: readonly (string)[]
  readonly channel_ref: readonly (string)[]
  readonly setup: {
    readonly secret: {
      readonly from: "intray" | "vendor"
      readonly name: string
    } | null
    readonly steps: readonly (string)[]
  } | null
  readonly has_sample: boolean
}

export type RecipeList = {
  readonly ok: true
  readonly recipes: readonly (Recipe)[]
}

export type Refusal = {
  readonly id: number
  readonly received_at: Time
  readonly error: string
  readonly reason: string | null
  readonly key_id: string
  readonly route: string
  readonly request_id: string
  readonly headers: Readonly<Record<string, string>>
  readonly body_size: number
  readonly body: string
  readonly accepted_as: number | null
}

export type RefusalAnswer = {
  readonly ok: true
  readonly refusal: RefusalDetail
}

export type RefusalCount = {
  readonly code: string
  readonly count: number
  readonly last_at: Time
}

export type RefusalDetail = {
  readonly id: number
  readonly received_at: Time
  readonly error: string
  readonly reason: string | null
  readonly key_id: string
  readonly route: string
  readonly request_id: string
  readonly headers: Readonly<Record<string, string>>
  readonly body_size: number
  readonly body: string
  readonly accepted_as: number | null
  readonly body_base64: string
}

export type RefusalPage = {
  readonly ok: true
  readonly refusals: readonly (Refusal)[]
  readonly next: Next
}

export type ReleaseCommand = ReleaseOne | ReleaseList

export type ReleaseList = {
  readonly events: readonly (ReleasedEvent)[]
  readonly delay_s?: Delay
  readonly error?: ProcessingError
  readonly dead?: Dead
  readonly subscription?: SubscriptionName
}

export type ReleaseOne = {
  readonly id: EventId
  readonly lease_id: LeaseId
  readonly delay_s?: Delay
  readonly error?: ProcessingError
  readonly dead?: Dead
  readonly subscription?: SubscriptionName
}

export type ReleasedEvent = {
  readonly id: EventId
  readonly lease_id: LeaseId
  readonly delay_s?: Delay
  readonly error?: ProcessingError
  readonly dead?: Dead
}

export type RemovedEndpoint = {
  readonly ok: true
  readonly subscription: string
}

export type ReplayCommand = {
  readonly from: number
  readonly to: number
  readonly limit?: number | null
  readonly dry_run?: boolean | null
}

export type Replayed = {
  readonly ok: true
  readonly dry_run: boolean
  readonly matched: number
  readonly replayed: number
  readonly next: number | null
}

export type RequestId = string

export type RequeueCommand = {
  readonly subscription?: SubscriptionName
  readonly filter?: {
    readonly channel_ref?: string
    readonly dead_after?: string
    readonly dead_before?: string
  }
  readonly limit?: number
  readonly dry_run?: boolean
}

export type RequeueEventCommand = {
  readonly subscription?: SubscriptionName
}

export type Requeued = {
  readonly ok: true
  readonly dry_run: boolean
  readonly matched: number
  readonly requeued: number
}

export type RequeuedEvent = {
  readonly ok: true
  readonly id: EventId
  readonly requeued: boolean
}

export type RevisionPage = {
  readonly ok: true
  readonly revisions: readonly (Event)[]
  readonly next: Next
  readonly index_lag?: IndexLag
}

export type RotateCommand = {
  readonly overlap?: string
  readonly expires_in?: string
}

export type RotateHookCommand = {
  readonly what: "address" | "secret"
  readonly secret?: string
  readonly overlap?: string
  readonly expires_in?: string
}

export type Scope = string

export type Sender = {
  readonly key_id: string
  readonly label: string
  readonly scope: string
  readonly events_24h: number
  readonly last_used_at: string | null
}

export type SessionAnswer = {
  readonly ok: true
  readonly operator: Operator
  readonly expires_at: Time
}

export type SetEndpoint = {
  readonly ok: true
  readonly created: boolean
  readonly endpoint: EndpointWithSecret
}

export type SettledEvent = {
  readonly id: EventId
  readonly ok: boolean
  readonly error?: "lease_lost"
  readonly state?: DeliveryState
  readonly lease_expires_at?: string
  readonly available_at?: string
}

export type SettledEvents = {
  readonly ok: true
  readonly events: readonly (SettledEvent)[]
}

export type ShownEndpoint = {
  readonly ok: true
  readonly endpoint: EndpointWithSummary
}

export type SignInCommand = {
  readonly name: string
  readonly password: string
} | {
  readonly link: string
}

export type SignedOut = {
  readonly ok: true
  readonly everywhere: boolean
}

export type Subscription = {
  readonly name: string
  readonly created_at: string | null
  readonly enqueued_up_to: number
  readonly max_attempts: number
  readonly first_delay_s: number
  readonly max_delay_s: number
}

export type SubscriptionCommand = {
  readonly name: SubscriptionName
  readonly from?: "now" | "beginning"
  readonly max_attempts?: number
  readonly first_delay_s?: number
  readonly max_delay_s?: number
}

export type SubscriptionName = string

export type Subscriptions = {
  readonly ok: true
  readonly subscriptions: readonly (Subscription)[]
}

export type SwitchedHook = {
  readonly ok: true
  readonly hook: Hook
  readonly in_force: boolean
}

export type Tenant = {
  readonly account_id: number
  readonly company_id: number
}

export type TenantPage = {
  readonly ok: true
  readonly tenants: readonly (Tenant)[]
  readonly next: Next
}

export type TestEvent = {
  readonly ok: true
  readonly id: number
  readonly outcome: "stored" | "duplicate" | "conflict"
}

export type Time = string

export type Token = {
  readonly key_id: string
  readonly scope: string
  readonly label: string
  readonly state: "active" | "disabled" | "expired"
  readonly created_at: Time
  readonly expires_at: string | null
  readonly disabled_at: string | null
  readonly last_used_at: string | null
  readonly rotated_from: string | null
}

export type TokenAnswer = {
  readonly ok: true
  readonly token: NewToken
}

export type TokenCommand = {
  readonly scope?: Scope
  readonly label?: string
  readonly expires_in?: string
}

export type TokenPage = {
  readonly ok: true
  readonly tokens: readonly (Token)[]
  readonly next: Next
}

export type TrafficCounts = {
  readonly events: number
  readonly duplicates: number
  readonly revisions: number
}

export type TrafficMinute = {
  readonly at: Time
  readonly events: number
  readonly duplicates: number
  readonly revisions: number
}

export type Warning = {
  readonly path: string
  readonly expected: string
  readonly got: string
}

export interface Operations {
  'POST /v1/inbox/events': {
    query: {}
    body: InboxEvent
    answer: Receipt
  }
  'GET /v1/inbox/events': {
    query: { limit?: number; cursor?: string; q?: string; channel_ref?: string; contact_email?: string; source_ref?: string; received_after?: string; received_before?: string; kind?: "event" | "revision"; state?: "pending" | "leased" | "done" | "dead"; subscription?: SubscriptionName; scope?: string; key_id?: string; message_type?: string }
    body: undefined
    answer: EventPage
  }
  'GET /v1/hooks/{hook_id}': {
    query: {}
    body: undefined
    answer: undefined
  }
  'POST /v1/hooks/{hook_id}': {
    query: {}
    body: unknown
    answer: HookReceipt
  }
  'GET /v1/inbox/stream': {
    query: { after?: number }
    body: undefined
    answer: undefined
  }
  'POST /v1/inbox/claims': {
    query: {}
    body: ClaimCommand
    answer: ClaimedEvents
  }
  'POST /v1/inbox/claims/ack': {
    query: {}
    body: AckCommand
    answer: SettledEvents
  }
  'POST /v1/inbox/claims/extend': {
    query: {}
    body: ExtendCommand
    answer: SettledEvents
  }
  'POST /v1/inbox/claims/release': {
    query: {}
    body: ReleaseCommand
    answer: SettledEvents
  }
  'POST /v1/inbox/requeue': {
    query: {}
    body: RequeueCommand
    answer: Requeued
  }
  'POST /v1/inbox/events/{id}/requeue': {
    query: {}
    body: RequeueEventCommand
    answer: RequeuedEvent
  }
  'GET /v1/inbox/events/{id}/history': {
    query: {}
    body: undefined
    answer: EventHistory
  }
  'GET /v1/inbox/subscriptions': {
    query: {}
    body: undefined
    answer: Subscriptions
  }
  'POST /v1/inbox/subscriptions': {
    query: {}
    body: SubscriptionCommand
    answer: CreatedSubscription
  }
  'DELETE /v1/inbox/subscriptions/{name}': {
    query: {}
    body: undefined
    answer: DeletedSubscription
  }
  'GET /v1/inbox/endpoints': {
    query: {}
    body: undefined
    answer: Endpoints
  }
  'GET /v1/inbox/subscriptions/{name}/endpoint': {
    query: {}
    body: undefined
    answer: ShownEndpoint
  }
  'POST /v1/inbox/subscriptions/{name}/endpoint': {
    query: {}
    body: EndpointCommand
    answer: SetEndpoint
  }
  'DELETE /v1/inbox/subscriptions/{name}/endpoint': {
    query: {}
    body: undefined
    answer: RemovedEndpoint
  }
  'GET /v1/inbox/subscriptions/{name}/endpoint/attempts': {
    query: { limit?: number }
    body: undefined
    answer: EndpointAttempts
  }
  'POST /v1/inbox/subscriptions/{name}/endpoint/pause': {
    query: {}
    body: undefined
    answer: ChangedEndpoint
  }
  'POST /v1/inbox/subscriptions/{name}/endpoint/resume': {
    query: {}
    body: undefined
    answer: ChangedEndpoint
  }
  'POST /v1/inbox/subscriptions/{name}/endpoint/secret': {
    query: {}
    body: EndpointRotation
    answer: ChangedEndpoint
  }
  'POST /v1/inbox/subscriptions/{name}/endpoint/test': {
    query: {}
    body: undefined
    answer: EndpointTest
  }
  'POST /v1/inbox/subscriptions/{name}/endpoint/replay': {
    query: {}
    body: ReplayCommand
    answer: Replayed
  }
  'GET /v1/inbox/events/{id}': {
    query: {}
    body: undefined
    answer: EventAnswer
  }
  'DELETE /v1/inbox/events/{id}': {
    query: {}
    body: undefined
    answer: Erased
  }
  'POST /v1/inbox/erasures': {
    query: {}
    body: EraseCommand
    answer: Erased
  }
  'GET /v1/inbox/events/{id}/payload': {
    query: {}
    body: undefined
    answer: Readonly<Record<string, unknown>>
  }
  'GET /v1/inbox/events/{id}/revisions': {
    query: { limit?: number; cursor?: string }
    body: undefined
    answer: RevisionPage
  }
  'POST /v1/inbox/events/{id}/promote': {
    query: {}
    body: undefined
    answer: Promotion
  }
  'GET /v1/inbox/conversations': {
    query: { limit?: number; cursor?: string; channel_ref?: string }
    body: undefined
    answer: ConversationPage
  }
  'GET /v1/inbox/conversations/{id}': {
    query: {}
    body: undefined
    answer: ConversationAnswer
  }
  'GET /v1/inbox/conversations/{id}/events': {
    query: { limit?: number; cursor?: string }
    body: undefined
    answer: EventPage
  }
  'GET /v1/inbox/refusals': {
    query: { limit?: number; cursor?: string }
    body: undefined
    answer: RefusalPage
  }
  'POST /v1/console/session': {
    query: {}
    body: SignInCommand
    answer: SessionAnswer
  }
  'GET /v1/console/session': {
    query: {}
    body: undefined
    answer: SessionAnswer
  }
  'DELETE /v1/console/session': {
    query: { everywhere?: "true" | "false" }
    body: undefined
    answer: SignedOut
  }
  'GET /v1/console/tenants': {
    query: { limit?: number; cursor?: string }
    body: undefined
    answer: TenantPage
  }
  'GET /v1/console/overview': {
    query: {}
    body: undefined
    answer: Overview
  }
  'GET /v1/console/tokens': {
    query: { limit?: number; cursor?: string }
    body: undefined
    answer: TokenPage
  }
  'POST /v1/console/tokens': {
    query: {}
    body: TokenCommand
    answer: TokenAnswer
  }
  'POST /v1/console/tokens/{key_id}/rotate': {
    query: {}
    body: RotateCommand
    answer: ChangedToken
  }
  'POST /v1/console/tokens/{key_id}/disable': {
    query: {}
    body: undefined
    answer: ChangedToken
  }
  'POST /v1/console/tokens/{key_id}/enable': {
    query: {}
    body: undefined
    answer: ChangedToken
  }
  'GET /v1/console/hooks': {
    query: { limit?: number; cursor?: string }
    body: undefined
    answer: HookPage
  }
  'POST /v1/console/hooks': {
    query: {}
    body: HookCommand
    answer: HookAnswer
  }
  'GET /v1/console/hooks/{key_id}': {
    query: {}
    body: undefined
    answer: HookAnswer
  }
  'POST /v1/console/hooks/{key_id}/rotate': {
    query: {}
    body: RotateHookCommand
    answer: ChangedHook
  }
  'POST /v1/console/hooks/{key_id}/disable': {
    query: {}
    body: undefined
    answer: SwitchedHook
  }
  'POST /v1/console/hooks/{key_id}/enable': {
    query: {}
    body: undefined
    answer: SwitchedHook
  }
  'GET /v1/console/hooks/{key_id}/deliveries': {
    query: {}
    body: undefined
    answer: HookDeliveries
  }
  'POST /v1/console/hooks/{key_id}/samples': {
    query: {}
    body: HookSampleCommand
    answer: HookSample
  }
  'GET /v1/console/recipes': {
    query: {}
    body: undefined
    answer: RecipeList
  }
  'GET /v1/console/refusals/{id}': {
    query: {}
    body: undefined
    answer: RefusalAnswer
  }
  'POST /v1/console/refusals/{id}/accept': {
    query: {}
    body: InboxEvent
    answer: AcceptedRefusal
  }
  'POST /v1/console/test-events': {
    query: {}
    body: InboxEvent
    answer: TestEvent
  }
  'GET /v1/console/audit': {
    query: { limit?: number; cursor?: string }
    body: undefined
    answer: AuditPage
  }
}
