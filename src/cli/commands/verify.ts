// `./intray verify`: checks a file that ./intray export wrote, and names what is damaged.

import { checkExport, type ExportProblem } from '../../transfer/check-export.ts'
import type { Manifest } from '../../transfer/export-file.ts'
import { command } from '../command.ts'
import { DamagedFile, exportChunks } from '../export-file.ts'
import { JSON_FLAG } from '../flags.ts'
import { createProgress, print, printable, printJson } from '../output.ts'

const MAX_PROBLEMS = 20

export const verify = command({
  args: 'FILE',
  about: `Checks a file that ./intray export wrote: every line, every payload and the whole against their digests. A changed, missing
or added byte is found; the first ${MAX_PROBLEMS} damaged lines are named with the ids of their rows. Exit code 1 if there is one.`,
  flags: JSON_FLAG,
  async run(values, [file = '']) {
    const { problems, manifest } = await verifyExport(file)
    const isWhole = problems.length === 0
    if (values.json) printJson({ ok: isWhole, file, manifest, problems })
    else if (isWhole) print(`${file} is whole: ${manifest!.rows} rows, SHA-256 ${manifest!.sha256}.\n`)
    else print(`${file} is damaged:\n${problems.map((one) => `  ${printable(problemText(one))}\n`).join('')}`)
    return isWhole ? 0 : 1
  },
})

interface Verified {
  readonly problems: readonly ExportProblem[]
  readonly manifest: Manifest | null
}

async function verifyExport(file: string): Promise<Verified> {
  const problems: ExportProblem[] = []
  const onProblem = (problem: ExportProblem) => {
    if (problems.length < MAX_PROBLEMS) problems.push(problem)
  }
  const progress = createProgress('verify')
  let last = 0
  try {
    const rows = checkExport(exportChunks(file), { onProblem })
    for (;;) {
      const next = await rows.next()
      if (next.done) return { problems, manifest: next.value.manifest }
      last = next.value.id
      progress.say(`id ${last}`)
    }
  } catch (error) {
    if (!(error instanceof DamagedFile)) throw error
    return { problems: [...problems, { line: 0, id: last === 0 ? null : last, what: error.message }], manifest: null }
  } finally {
    progress.end()
  }
}

function problemText({ line, id, what }: ExportProblem): string {
  if (line === 0) return `${what}${id === null ? '' : ` The last whole row is id ${id}.`}`
  return `Line ${line}${id === null ? '' : ` (id ${id})`} ${what}.`
}
