// `./intray retention …`: how long the data of tenants is kept. One file for each sub-command.

import { commandGroup } from '../command.ts'
import { retentionPreview } from './retention/preview.ts'
import { retentionSet } from './retention/set.ts'
import { retentionShow } from './retention/show.ts'

export const retention = commandGroup(
  'Sets how long messages, refusals and histories are kept',
  `A rule belongs to a tenant, or is the default of all others. A running server reads the rules again each time, every
INTRAY_RETENTION_EVERY; no restart is needed. docs/operating/retention.md says what goes and what stays.`,
  { set: retentionSet, show: retentionShow, preview: retentionPreview },
)
