// `prove cut`: the answer is lost after the commit, which it shares with others. A cycle is one lost answer.
// Claim: a sender that sends the same again, with a source_ref or an Idempotency-Key, has its message stored once.
// Control: a sender without either does the same and must be found to have its messages stored twice.

import type { Findings } from '../check.ts'
import { Cutter } from '../cutter.ts'
import { GROUP_CONNECTIONS, readAppends, Strikes } from '../group-commit.ts'
import { ALL_BARE, type Mix } from '../messages.ts'
import type { Proof, ProofContext } from '../proof.ts'
import { brokenIn, inWords, newSubject } from '../subject.ts'

const CUT_PERCENT = 50
const CONTROL_CUTS = 50

export const cut: Proof = {
  name: 'cut',
  about: 'the answer is cut off after the commit, by a proxy',
  needs: '',
  stores: ['sqlite', 'postgres'],
  defaultCycles: 2000,
  async run(context) {
    const { findings, cutter, replayed, strikes } = await sendThroughCuts(context, 'cut', context.cycles)
    const control = await sendThroughCuts(context, 'bare', Math.min(CONTROL_CUTS, context.cycles), ALL_BARE)
    context.progress(`control: ${inWords(control.findings)}`)
    return {
      counts: { ...findings.counts, faults: cutter.cuts },
      notes: [
        `${cutter.cuts} answers with status 200 were cut off, ${cutter.unseen} of them before the first byte; ${cutter.passed} answers passed.`,
        ...strikes.notes(),
        `${replayed} attempts were answered with the id of the first ("duplicate").`,
      ],
      broken: [
        ...brokenIn(findings),
        ...strikes.problems(),
        ...(replayed >= findings.counts.unknown ? [] : [`only ${replayed} re-sends were recognised`]),
      ],
      controls: [
        {
          about: 'a sender that names its messages by nothing',
          failed: control.findings.counts.twice > 0,
          detail: `${control.cutter.cuts} cuts, ${inWords(control.findings)}`,
        },
      ],
    }
  },
}

async function sendThroughCuts(
  context: ProofContext,
  name: string,
  cuts: number,
  mix?: Mix,
): Promise<{ findings: Findings; cutter: Cutter; replayed: number; strikes: Strikes }> {
  let cutter: Cutter | null = null
  const strikes = new Strikes('a cut')
  let replayed = 0
  const subject = await newSubject(context, {
    name,
    service: { hasMetrics: true },
    load: {
      onTrouble: 'resend',
      connections: GROUP_CONNECTIONS,
      port: () => cutter!.port,
      onAnswer: ({ duplicate }) => {
        if (duplicate) replayed += 1
      },
      ...(mix ? { mix } : {}),
    },
  })
  const { service, load } = subject
  await service.start()
  cutter = await Cutter.start(context, () => service.port, context.random.fork(`${name}-cuts`), CUT_PERCENT)
  const enough = Promise.withResolvers<void>()
  cutter.onCut = () => {
    strikes.struck(load.inFlight)
    if (cutter!.cuts % 500 === 0) context.progress(`${cutter!.cuts} cuts, ${load.acknowledged} acknowledged`)
    if (cutter!.cuts === cuts) enough.resolve()
  }
  const running = load.run()
  await Promise.race([enough.promise, running])
  await load.stop()
  await load.settle()
  const findings = await subject.check()
  strikes.appended(readAppends(await service.metrics()))
  await service.stop()
  return { findings, cutter, replayed, strikes }
}
