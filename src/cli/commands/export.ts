// `./intray export`: writes messages into a file, beside running servers: exact, as a table for people, or for analysis.

import { constants, setPriority } from 'node:os'
import { loadConfig } from '../../config.ts'
import type { Tenant } from '../../model/principal.ts'
import { DEFAULT_SUBSCRIPTION, STATES } from '../../model/processing.ts'
import { isoTime, systemClock } from '../../runtime/clock.ts'
import { isoMoment, oneOf, textUpTo } from '../../runtime/parameter.ts'
import type { Store } from '../../store/contract/store.ts'
import { csvLines } from '../../transfer/csv.ts'
import { exportLines, type ExportHeader, FORMAT_VERSION, Tally } from '../../transfer/export-file.ts'
import type { ExportedRow } from '../../transfer/export-row.ts'
import { type ExportFilter, exportRows } from '../../transfer/export-rows.ts'
import { parquetBytes } from '../../transfer/parquet.ts'
import { recordCommand } from '../audit.ts'
import { command, CommandError, UsageError } from '../command.ts'
import { coverIndex } from '../cover-index.ts'
import { type ExportChunks, STDOUT, writeExport } from '../export-target.ts'
import { flag, TENANT_FLAGS, tenantOf } from '../flags.ts'
import { withStore } from '../open.ts'
import { createProgress, note } from '../output.ts'

const MAX_UNITS = 512
const FORMATS = ['ndjson', 'csv', 'parquet'] as const

type Format = (typeof FORMATS)[number]

const ABOUT = `Writes messages into a file, while servers run.

  ./intray export --out all.ndjson.gz
  ./intray export --account 7 --company 42 --from 2026-01-01T00:00:00Z --to 2026-02-01T00:00:00Z --out january.ndjson

The file holds every message that was acknowledged before the command began: one JSON object a line, with the payload's bytes
exactly as sent, its references, times and revisions. ./intray verify checks such a file, ./intray import reads it. CSV is for
spreadsheets, Parquet for analysis; neither can be imported. Erased messages are in it without content. The file is written as FILE.part, readable for this user only, synced, and then renamed; a name that
ends in .gz is compressed. What each field means: docs/operating/export.md.`

export const exportCommand = command({
  about: ABOUT,
  flags: {
    out: { value: 'FILE', about: 'Where to write; it must not exist. - for stdout.', isRequired: true },
    format: {
      value: 'F',
      about: `${FORMATS.join(', ')} [as the name ends; ndjson]. Only ndjson can be verified and imported.`,
    },
    account: { value: 'N', about: 'Only messages of this tenant; with --company.' },
    company: { value: 'N', about: TENANT_FLAGS.company.about },
    from: { value: 'TIME', about: 'Only messages received at this time or later, such as 2026-01-31T00:00:00Z.' },
    to: { value: 'TIME', about: 'Only messages received before this time.' },
    channel: { value: 'REF', about: 'Only messages with this channel_ref. Needs the tenant.' },
    state: { value: 'STATE', about: `Only events in this state: ${STATES.join(', ')}. Needs the tenant.` },
    subscription: {
      value: 'NAME',
      about: `Adds each event's state in this subscription; whose state --state means [${DEFAULT_SUBSCRIPTION}].`,
    },
  },
  async run(values) {
    setPriority(constants.priority.PRIORITY_BELOW_NORMAL)
    const { out } = values
    if (out === undefined) throw new UsageError('The file is missing. Give --out FILE, or --out - for stdout.')
    const format = flag('format', values.format, oneOf(...FORMATS)) ?? formatOf(out)
    const filter = filterOf(values)
    const config = loadConfig(process.env)
    const tally = new Tally()
    await withStore(async (store) => {
      await requireSubscription(store, filter)
      await coverIndex(store, config)
      const throughId = await store.events.watermark()
      await recordCommand(store, 'export', out === STDOUT ? 'stdout' : out, filter.tenant)
      const now = systemClock.now()
      const progress = createProgress('export')
      const onProgress = (id: number) => progress.say(`id ${id} of ${throughId}`)
      const rows = exportRows(store, filter, { throughId, now, onProgress })
      const header = headerOf(store, filter, throughId, now)
      await writeExport(out, chunksOf(format, header, rows, tally))
      progress.end()
    }, config)
    const { rows, events, revisions, erased, damaged } = tally.manifest()
    note(`${rows} rows: ${events} events, ${revisions} revisions; ${erased} of them erased. ${where(out)}`)
    if (damaged > 0) {
      throw new CommandError(
        `The bytes of ${damaged} rows no longer match their digest; they were exported without payload. ./intray doctor names them.`,
      )
    }
  },
})

function formatOf(out: string): Format {
  const [, ending] = /\.([a-z]+)(?:\.gz)?$/.exec(out) ?? []
  return FORMATS.find((format) => format === ending) ?? 'ndjson'
}

function chunksOf(format: Format, header: ExportHeader, rows: AsyncIterable<ExportedRow>, tally: Tally): ExportChunks {
  if (format === 'csv') return csvLines(rows, tally)
  if (format === 'parquet') return parquetBytes(header, rows, tally)
  return exportLines(header, rows, tally)
}

function filterOf(values: {
  readonly account?: string
  readonly company?: string
  readonly from?: string
  readonly to?: string
  readonly channel?: string
  readonly state?: string
  readonly subscription?: string
}): ExportFilter {
  const hasTenant = values.account !== undefined || values.company !== undefined
  const tenant: Tenant | null = hasTenant ? tenantOf(values) : null
  const state = flag('state', values.state, oneOf(...STATES))
  for (const name of ['channel', 'state', 'subscription'] as const) {
    if (values[name] !== undefined && tenant === null)
      throw new UsageError(`--${name} needs the tenant. Add --account N and --company N.`)
  }
  return {
    tenant,
    from: flag('from', values.from, isoMoment),
    to: flag('to', values.to, isoMoment),
    channelRef: flag('channel', values.channel, textUpTo(MAX_UNITS)),
    state,
    subscription: values.subscription ?? (state === undefined ? undefined : DEFAULT_SUBSCRIPTION),
  }
}

/** A misspelt name would make every event pending. */
async function requireSubscription({ processing }: Store, { tenant, subscription }: ExportFilter): Promise<void> {
  if (tenant === null || subscription === undefined) return
  const names = (await processing.subscriptions(tenant)).map(({ name }) => name)
  if (!names.includes(subscription))
    throw new CommandError(`This tenant has no subscription ${subscription}, but: ${names.join(', ')}.`)
}

function headerOf({ facts }: Store, filter: ExportFilter, throughId: number, now: number): ExportHeader {
  const { tenant, from, to, channelRef, state, subscription } = filter
  return {
    intray_export: FORMAT_VERSION,
    database: String(facts.database_uuid),
    exported_at: isoTime(now),
    through_id: throughId,
    filters: {
      ...(tenant === null ? {} : { account: tenant.accountId, company: tenant.companyId }),
      ...(from === undefined ? {} : { from: isoTime(from) }),
      ...(to === undefined ? {} : { to: isoTime(to) }),
      ...(channelRef === undefined ? {} : { channel: channelRef }),
      ...(state === undefined ? {} : { state }),
      ...(subscription === undefined ? {} : { subscription }),
    },
  }
}

function where(out: string): string {
  return out === STDOUT ? '' : `Written: ${out}`
}
