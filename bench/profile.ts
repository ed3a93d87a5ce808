// `bench profile <folder>`: the functions in which each thread of a V8 CPU profile spent its time.
// Promises: self time, so rows add up; idle time is shown apart and not part of the shares.

import { readdirSync, readFileSync } from 'node:fs'
import { basename, join, relative } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { table } from './table.ts'
import { UsageError } from './usage-error.ts'

const TOP = 25
const NOT_WORK = new Set(['(idle)', '(root)'])
const ROOT = pathToFileURL(fileURLToPath(new URL('..', import.meta.url))).href

interface CpuProfile {
  readonly nodes: readonly {
    readonly id: number
    readonly callFrame: { readonly functionName: string; readonly url: string; readonly lineNumber: number }
  }[]
  readonly samples: readonly number[]
  readonly timeDeltas: readonly number[]
}

export async function runProfile(argv: readonly string[]): Promise<number> {
  const [folder, ...rest] = argv
  if (folder === undefined || folder.startsWith('-') || rest.length > 0) {
    throw new UsageError('Usage: npm run bench -- profile <folder with .cpuprofile files>')
  }
  const files = readdirSync(folder).filter((name) => name.endsWith('.cpuprofile'))
  if (files.length === 0) throw new UsageError(`There is no .cpuprofile in ${folder}.`)
  for (const file of files) console.log(describe(join(folder, file)))
  return 0
}

/** Self time per function in microseconds. */
function selfTimes({ nodes, samples, timeDeltas }: CpuProfile): Map<string, number> {
  const names = new Map(nodes.map(({ id, callFrame }) => [id, frameName(callFrame)]))
  const times = new Map<string, number>()
  samples.forEach((id, i) => {
    const name = names.get(id) ?? '?'
    times.set(name, (times.get(name) ?? 0) + (timeDeltas[i] ?? 0))
  })
  return times
}

function frameName(frame: CpuProfile['nodes'][number]['callFrame']): string {
  const name = frame.functionName === '' ? '(anonymous)' : frame.functionName
  const place = frame.url.startsWith(ROOT) ? frame.url.slice(ROOT.length) : frame.url
  return place === '' ? name : `${name}  ${place}:${frame.lineNumber + 1}`
}

function describe(path: string): string {
  const times = selfTimes(JSON.parse(readFileSync(path, 'utf8')) as CpuProfile)
  const all = [...times.values()].reduce((sum, us) => sum + us, 0)
  const work = [...times].filter(([name]) => !NOT_WORK.has(name)).toSorted(([, a], [, b]) => b - a)
  const busy = work.reduce((sum, [, us]) => sum + us, 0)
  const rows = work
    .slice(0, TOP)
    .map(([name, us]) => [`${((100 * us) / busy).toFixed(1)} %`, (us / 1e6).toFixed(2), name])
  const head = `${relative('.', join(path, '..', basename(path)))}: busy ${(busy / 1e6).toFixed(1)} of ${(all / 1e6).toFixed(1)} s`
  const columns = [
    { title: 'self', align: 'right' },
    { title: 'seconds' },
    { title: 'function', align: 'left' },
  ] as const
  return `${head}\n\n${table(columns, rows)}\n`
}
