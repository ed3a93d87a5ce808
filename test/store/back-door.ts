// What a test needs to do to a database that no store would do: damage it, and look at all of it. One per driver.

import type { Driver } from '../support/drivers.ts'
import { postgresBackDoor } from './back-door-postgres.ts'
import { sqliteBackDoor } from './back-door-sqlite.ts'
import type { DeliveryRow, LaneRow } from './lane-rows.ts'
import type { RefCounts } from './ref-counts.ts'

export interface BackDoor {
  /** Every row of everything that is derived from the journal, in the order of its key. */
  dumpIndex(url: string): Promise<Record<string, readonly unknown[]>>
  /** How many rows each primary table holds. */
  countJournal(url: string): Promise<{ readonly events: number; readonly resends: number; readonly dedupe: number }>
  countRefs(url: string): Promise<RefCounts>
  /** Takes away the constraint that dedupe rests on; the table stays. */
  dropDedupeKey(url: string): Promise<void>
  /** Damages what is stored: other bytes under the digest of the first. */
  replacePayload(url: string, id: number, payload: Uint8Array): Promise<void>
  /** Stores these bytes with their right digest, as an intake with a hole in it would have. */
  smugglePayload(url: string, id: number, payload: Uint8Array): Promise<void>
  /** Removes the dedupe key of an event, or the event itself. */
  deleteKey(url: string, id: number): Promise<void>
  deleteEvent(url: string, id: number): Promise<void>
  /** From now on the database refuses an event with this source_ref, and an index entry with this contact name. */
  refuseEvent(url: string, sourceRef: string): Promise<void>
  refuseEntry(url: string, contactName: string): Promise<void>
  /** Takes both back. */
  refuseNothing(url: string): Promise<void>
  /** What processing keeps: every lane, and every delivery that is not done or dead. */
  dumpLanes(url: string): Promise<{ readonly lanes: readonly LaneRow[]; readonly deliveries: readonly DeliveryRow[] }>
}

const backDoors: Record<string, BackDoor> = { sqlite: sqliteBackDoor, postgres: postgresBackDoor }

export function backDoorOf(driver: Driver): BackDoor {
  const found = backDoors[driver.name]
  if (!found) throw new Error(`the driver ${driver.name} has no back door for tests`)
  return found
}
