// `bench retention`: deleting the oldest messages on PostgreSQL in slices, as the service does it, against dropping a partition of a
// table that holds the journal's rows alone; and what either does to the rate of appends.
// Promises: bounded by the numbers given; the database server and its folder are removed in any case.

import { parseArgs } from 'node:util'
import type { PurgePosition } from '../src/model/retention-plan.ts'
import type { Store } from '../src/store/contract/store.ts'
import { openStore } from '../src/store/open.ts'
import { item, TENANT } from '../test/store/rows.ts'
import { withClient } from '../test/support/postgres/databases.ts'
import { startDatabases } from './contestants/databases.ts'
import { machineFacts } from './machine.ts'
import { numberIn } from './option-values.ts'
import { Scope } from './scope.ts'
import { table } from './table.ts'

const HELP = `Usage: npm run bench -- retention [options]

  --events <n>        stored and indexed before (5000000)
  --delete <n>        of them, the oldest (1000000)
  --seconds <n>       of each measurement of the append rate (20)
  --folder <path>     where the temporary folder is made; must be a real disk (/tmp)
  --help`

const BATCH = 64
const IN_FLIGHT = 2
const CHANNELS = 10_000
const BEGAN = Date.parse('2025-01-01T00:00:00.000Z')
const TEXT = 'x'.repeat(250)

interface Options {
  readonly events: number
  readonly deleted: number
  readonly seconds: number
  readonly folder: string
}

export async function runRetention(argv: readonly string[]): Promise<number> {
  const text = { type: 'string' } as const
  const flags = { events: text, delete: text, seconds: text, folder: text } as const
  const { values } = parseArgs({ args: [...argv], options: { ...flags, help: { type: 'boolean', short: 'h' } } })
  if (values.help) {
    console.log(HELP)
    return 0
  }
  const options = {
    events: numberIn('events', values.events, 5_000_000, 1000, 100_000_000),
    deleted: numberIn('delete', values.delete, 1_000_000, 100, 100_000_000),
    seconds: numberIn('seconds', values.seconds, 20, 1, 600),
    folder: values.folder ?? '/tmp',
  }
  const scope = new Scope(options.folder)
  const databases = await startDatabases('postgres', scope)
  try {
    const { cpu, cores, node } = machineFacts()
    console.log(`${cpu}, ${cores} cores, Node ${node}, postgres, ${options.events} events\n`)
    console.log(await measure(await databases.newUrl(), options))
    return 0
  } finally {
    await databases.close()
    await scope.close()
  }
}

async function measure(url: string, options: Options): Promise<string> {
  const store = await openStore(url, { role: 'server' })
  try {
    let next = await append(store, 0, ({ appended }) => appended < options.events)
    await indexAll(store)
    const rows: string[][] = []
    /** Appends until the other work, or the time, is over. */
    const beside = async (name: string, isOver: () => boolean, work: Promise<string>) => {
      const startedAt = performance.now()
      const before = next
      const [end, said] = await Promise.all([append(store, next, () => !isOver()), work])
      next = end
      const seconds = (performance.now() - startedAt) / 1000
      rows.push([name, String(Math.round((next - before) / seconds)), said])
    }
    const timer = () => {
      const end = performance.now() + options.seconds * 1000
      return () => performance.now() > end
    }
    await beside('nothing beside', timer(), Promise.resolve('-'))
    let isDone = false
    const slices = purge(store, options.deleted / 2, true).finally(() => {
      isDone = true
    })
    await beside('slices with pauses', () => isDone, slices)
    rows.push(['slices alone', '-', await purge(store, options.deleted / 2, false)])
    rows.push(...(await partitions(url, options)))
    return table([{ title: 'measured' }, { title: 'appends/s' }, { title: 'deleting' }], rows)
  } finally {
    await store.close()
  }
}

/** Appends messages from a number on, while the condition holds; returns the next number. */
async function append(
  store: Store,
  from: number,
  goesOn: (progress: { readonly appended: number }) => boolean,
): Promise<number> {
  let next = from
  const worker = async () => {
    while (goesOn({ appended: next - from })) {
      const first = next
      next += BATCH
      const items = Array.from({ length: BATCH }, (_, k) => {
        const n = first + k
        const fields = { sourceRef: `r:${n}`, channelRef: `c:${n % CHANNELS}`, receivedAt: BEGAN + n }
        return item({ ...fields, body: { source_ref: fields.sourceRef, text: TEXT } })
      })
      await store.journal.append(items)
    }
  }
  await Promise.all(Array.from({ length: IN_FLIGHT }, worker))
  return next
}

async function indexAll(store: Store): Promise<void> {
  const limits = { maxRows: 1000, maxBytes: 8 << 20 }
  for (;;) {
    await store.index.step(limits)
    const { lag, searchLag } = await store.index.stepWords({ ...limits, maxWords: 256 })
    if (lag === 0 && searchLag === 0) return
  }
}

/** As the service does it, until so many rows are gone. */
async function purge(store: Store, rows: number, pauses: boolean): Promise<string> {
  const startedAt = performance.now()
  let after: PurgePosition | null = null
  let gone = 0
  while (gone < rows) {
    const stepAt = performance.now()
    const request = { tenant: TENANT, before: Date.now(), now: Date.now(), purgesUnprocessed: true, dryRun: false }
    const step = await store.retention.purgeStep({ ...request, after })
    await store.retention.followPurges()
    gone += step.rows
    after = step.next
    if (after === null) break
    const pauseMs = 4 * (performance.now() - stepAt)
    if (pauses) await new Promise((resolve) => setTimeout(resolve, pauseMs))
  }
  const seconds = (performance.now() - startedAt) / 1000
  return `${Math.round(gone / seconds)} rows/s, ${gone} rows in ${seconds.toFixed(1)} s`
}

/** The journal's rows in a table of their own, plain and partitioned: inserts of a batch in one commit, and a DROP. */
async function partitions(url: string, { events, deleted, seconds }: Options): Promise<string[][]> {
  return withClient(url, async (client) => {
    const rows: string[][] = []
    await client.query('CREATE SCHEMA bench')
    await client.query('CREATE SEQUENCE bench.ids')
    await client.query('CREATE TABLE bench.plain (LIKE intray.events INCLUDING INDEXES)')
    await client.query('CREATE TABLE bench.parted (LIKE intray.events) PARTITION BY RANGE (id)')
    for (let from = 0; from < 4 * events; from += deleted) {
      await client.query(
        `CREATE TABLE bench.p${from} PARTITION OF bench.parted FOR VALUES FROM (${from}) TO (${from + deleted})`,
      )
    }
    await client.query('CREATE TABLE bench.rest PARTITION OF bench.parted DEFAULT')
    await client.query('ALTER TABLE bench.parted ADD PRIMARY KEY (id, company_id)')
    await client.query('CREATE INDEX ON bench.parted (revises, sha256, company_id) WHERE revises IS NOT NULL')
    await client.query('CREATE INDEX ON bench.parted (revises, id) WHERE revises IS NOT NULL')
    const names = await client.query<{ names: string }>(
      `SELECT string_agg(column_name, ', ' ORDER BY ordinal_position) AS names FROM information_schema.columns
        WHERE table_schema = 'intray' AND table_name = 'events' AND column_name <> 'id'`,
    )
    const columns = names.rows[0]!.names
    for (const name of ['plain', 'parted']) {
      await client.query(`SELECT setval('bench.ids', 1)`)
      const fill = (count: number) =>
        client.query(`INSERT INTO bench.${name} (id, ${columns})
          SELECT nextval('bench.ids'), ${columns} FROM intray.events ORDER BY id DESC LIMIT ${count}`)
      for (let filled = 0; filled < deleted; filled += 1000) await fill(1000)
      const end = performance.now() + seconds * 1000
      let inserted = 0
      while (performance.now() < end) {
        await fill(BATCH)
        inserted += BATCH
      }
      rows.push([`inserts, ${name} table`, String(Math.round(inserted / seconds)), '-'])
    }
    const startedAt = performance.now()
    await client.query('DROP TABLE bench.p0')
    rows.push(['drop of a partition', '-', `${(performance.now() - startedAt).toFixed(0)} ms for ${deleted} rows`])
    return rows
  })
}
