// The rows of lanes and of deliveries that are not done or dead, as a back door shows them.

export interface LaneKey {
  readonly company_id: number
  readonly subscription: number
  readonly lane: number
}

export interface LaneRow extends LaneKey {
  readonly head: number | null
  readonly ready_at: number | null
  readonly open_at: number | null
  readonly held: number
}

export interface DeliveryRow extends LaneKey {
  readonly event_id: number
  readonly state: 'pending' | 'leased'
  readonly available_at: number
  readonly lease_expires_at: number | null
  readonly ordered: number
}

/** In every driver. */
export const LANE_COLUMNS = 'company_id, subscription, lane, head, ready_at, open_at, held'
export const DELIVERY_COLUMNS =
  'company_id, subscription, lane, event_id, state, available_at, lease_expires_at, ordered'
