// `./intray import`: brings the messages of an export into a database, beside running servers or alone.

import { constants, setPriority } from 'node:os'
import { setTimeout as pause } from 'node:timers/promises'
import { loadConfig } from '../../config.ts'
import { promotedFrom } from '../../model/event-view.ts'
import { type Tenant, tenantText } from '../../model/principal.ts'
import type { Store } from '../../store/contract/store.ts'
import { checkExport, type ExportProblem } from '../../transfer/check-export.ts'
import type { ExportHeader } from '../../transfer/export-file.ts'
import type { ReadRow } from '../../transfer/export-row.ts'
import { type ImportCounts, type ImportResult, importRows } from '../../transfer/import-rows.ts'
import { recordCommand } from '../audit.ts'
import { command, CommandError, UsageError } from '../command.ts'
import { exportChunks } from '../export-file.ts'
import { JSON_FLAG, TENANT_FLAGS, tenantOf } from '../flags.ts'
import { withStore } from '../open.ts'
import { createProgress, note, print, printable, printJson } from '../output.ts'
import { urlOf } from '../url-flag.ts'

const ABOUT = `Brings the messages of a file that ./intray export wrote into a database, while servers run.

  ./intray import all.ndjson.gz --to postgres://intray:secret@db.example/intray

The file is checked first. Messages get new ids, in their order, and keep their times, references, revisions and conversations.
What the database holds is passed over: import a file again, or after an interruption, and nothing is stored twice. What the
database has erased stays erased. Imported messages are handed out for processing like any other. docs/operating/export.md`

/** Tenants that are looked up for the note about tokens. */
const MAX_TENANTS = 1000

export const importCommand = command({
  args: 'FILE',
  about: ABOUT,
  flags: {
    to: { value: 'URL', about: 'The database to import into [INTRAY_DATABASE_URL].' },
    'to-file': { value: 'FILE', about: 'A file that holds the URL: every user of the machine can see flags.' },
    account: { value: 'N', about: 'Import the messages of one tenant into another one; with --company.' },
    company: { value: 'N', about: TENANT_FLAGS.company.about },
    ...JSON_FLAG,
  },
  async run(values, [file = '']) {
    setPriority(constants.priority.PRIORITY_BELOW_NORMAL)
    const hasTenant = values.account !== undefined || values.company !== undefined
    const into = hasTenant ? tenantOf(values) : null
    const databaseUrl = urlOf(values.to, values['to-file'], '--to') ?? loadConfig(process.env).databaseUrl
    const { result, strangers } = await withStore(
      async (store) => {
        const contents = await contentsOf(file)
        if (into !== null && contents.tenants.size > 1)
          throw new UsageError('The file holds messages of several tenants, which cannot go to one. Export one tenant.')
        await recordCommand(store, 'import', file, into)
        const imported = await bringIn(store, file, contents, into)
        const tenants = into === null ? contents.tenants.values() : [into]
        return { result: imported, strangers: await tenantsWithoutToken(store, tenants) }
      },
      { databaseUrl },
    )
    report(result, strangers, values.json === true)
    return result.counts.failed === 0 ? 0 : 1
  },
})

/** What an import has to know of the whole file before it begins. */
interface Contents {
  readonly header: ExportHeader
  /** By name. */
  readonly tenants: ReadonlyMap<string, Tenant>
  readonly promoted: ReadonlySet<number>
  readonly lastId: number
}

async function contentsOf(file: string): Promise<Contents> {
  const tenants = new Map<string, Tenant>()
  const promoted = new Set<number>()
  const progress = createProgress('verify')
  const rows = checkExport(exportChunks(file), { onProblem: refuse })
  try {
    for (;;) {
      const next = await rows.next()
      if (next.done) {
        const { header, manifest } = next.value
        return { header: header!, tenants, promoted, lastId: manifest!.last_id ?? 0 }
      }
      const { id, meta } = next.value
      const { accountId, companyId } = meta
      if (tenants.size < MAX_TENANTS) tenants.set(tenantText(meta), { accountId, companyId })
      const revisionId = promotedFrom(meta)
      if (revisionId !== null) promoted.add(revisionId)
      progress.say(`id ${id}`)
    }
  } finally {
    progress.end()
  }

  function refuse({ line, id, what }: ExportProblem): never {
    const place = id === null ? `Line ${line}` : `Line ${line} (id ${id})`
    throw new CommandError(`${place} ${what}. Nothing was imported. ./intray verify ${file} names all of it.`)
  }
}

async function bringIn(store: Store, file: string, contents: Contents, into: Tenant | null): Promise<ImportResult> {
  const { header, promoted, lastId } = contents
  const progress = createProgress('import')
  const isServed = (await store.nodes.live()).length > 0
  let begun = performance.now()
  const onBatch = async (id: number, counts: ImportCounts) => {
    progress.say(`id ${id} of ${lastId}: ${textOf(counts)}`)
    // Servers get at least half of the database's time.
    if (isServed) await pause(performance.now() - begun)
    begun = performance.now()
  }
  try {
    return await importRows(rowsOf(file), { store, sourceUuid: header.database, into, promoted, onBatch })
  } finally {
    progress.end()
  }
}

/** Checked again: the file may be written to meanwhile. */
async function* rowsOf(file: string): AsyncGenerator<ReadRow> {
  yield* checkExport(exportChunks(file), {
    onProblem: () => {
      throw new CommandError(`${file} was changed while it was imported. Import it again when it is whole.`)
    },
  })
}

async function tenantsWithoutToken({ tokens }: Store, tenants: Iterable<Tenant>): Promise<Tenant[]> {
  const found: Tenant[] = []
  for (const tenant of tenants) if (!(await tokens.hasTenant(tenant))) found.push(tenant)
  return found
}

function report({ counts, failures }: ImportResult, strangers: readonly Tenant[], isJson: boolean): void {
  if (isJson) printJson({ ok: counts.failed === 0, ...jsonOf(counts), failures })
  else print(`Imported ${textOf(counts)}.\n`)
  for (const { id, reason } of failures) note(`intray: row ${id} was not imported: ${printable(reason)}.`)
  const [first] = strangers
  if (first) {
    const { accountId, companyId } = first
    note(
      `${strangers.length} of the tenants have no token here, such as account ${accountId}, company ${companyId}: ` +
        `./intray token create --account ${accountId} --company ${companyId} --scope processor`,
    )
  }
}

function jsonOf({ erasedHere, erasedThere, ...counts }: ImportCounts) {
  return { ...counts, erased_here: erasedHere, erased_there: erasedThere }
}

function textOf({ events, revisions, present, erasedHere, erasedThere, damaged, failed }: ImportCounts): string {
  const rest = { 'erased here': erasedHere, 'erased in the source': erasedThere, damaged, failed }
  const named = Object.entries(rest).flatMap(([what, count]) => (count === 0 ? [] : [`, ${count} ${what}`]))
  return `${events} events and ${revisions} revisions; passed over: ${present} already there${named.join('')}`
}
