// Refuses a cursor that another state of the database gave out: what it skips would never be heard of.

import type { Problem } from '../../model/errors.ts'
import type { Tenant } from '../../model/principal.ts'

/** Null for a cursor that is fine; otherwise the id to go on after. */
export type ResumePointOf = (tenant: Tenant, cursor: number) => Promise<number | null>

export async function cursorProblem(
  resumePointOf: ResumePointOf,
  tenant: Tenant,
  cursor: number | null,
): Promise<Problem | null> {
  const resumePoint = cursor === null ? null : await resumePointOf(tenant, cursor)
  if (resumePoint === null) return null
  return {
    code: 'cursor_ahead',
    message:
      'This database did not give out the id of this cursor: it was restored from a backup, and newer messages were lost, or ' +
      'your tenant was moved here from another database. ' +
      `Go on after ${resumePoint}, or begin again without a cursor.`,
  }
}
