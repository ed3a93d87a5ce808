// `prove cut`: the answer is lost after the commit, which the message shares with others. A cycle is one lost answer.
// Claim: a sender that repeats its request, with a source_ref or an Idempotency-Key, has its message stored once.
// Control: a sender without either does the same and must be found to have its messages stored twice.

import type { Findings } from '../check.ts'
import { CuttingProxy } from '../cutting-proxy.ts'
import { GROUP_CONNECTIONS, readAppends, GroupCommitStats } from '../group-commit.ts'
import { ALL_BARE, type Mix } from '../messages.ts'
import type { Proof, ProofContext } from '../proof.ts'
import { brokenIn, inWords, newSystemUnderTest } from '../system-under-test.ts'

const CUT_PERCENT = 50
const CONTROL_CUTS = 50

export const cut: Proof = {
  name: 'cut',
  about: 'the answer is cut off after the commit, by a proxy',
  needs: '',
  stores: ['sqlite', 'postgres'],
  defaultCycles: 2000,
  async run(context) {
    const { findings, proxy, replayed, groupCommits } = await sendThroughCuts(context, 'cut', context.cycles)
    const control = await sendThroughCuts(context, 'bare', Math.min(CONTROL_CUTS, context.cycles), ALL_BARE)
    context.progress(`control: ${inWords(control.findings)}`)
    return {
      counts: { ...findings.counts, faults: proxy.cuts },
      notes: [
        `${proxy.cuts} answers with status 200 were cut off, ${proxy.unseen} of them before the first byte; ${proxy.passed} answers passed.`,
        ...groupCommits.notes(),
        `${replayed} attempts were answered with the id of the first ("duplicate").`,
      ],
      broken: [
        ...brokenIn(findings),
        ...groupCommits.problems(),
        ...(replayed >= findings.counts.unknown ? [] : [`only ${replayed} re-sends were recognised`]),
      ],
      controls: [
        {
          about: 'a sender that names its messages by nothing',
          failed: control.findings.counts.twice > 0,
          detail: `${control.proxy.cuts} cuts, ${inWords(control.findings)}`,
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
): Promise<{ findings: Findings; proxy: CuttingProxy; replayed: number; groupCommits: GroupCommitStats }> {
  let proxy: CuttingProxy | null = null
  const groupCommits = new GroupCommitStats('a cut')
  let replayed = 0
  const system = await newSystemUnderTest(context, {
    name,
    service: { hasMetrics: true },
    load: {
      onTrouble: 'resend',
      connections: GROUP_CONNECTIONS,
      port: () => proxy!.port,
      onAnswer: ({ duplicate }) => {
        if (duplicate) replayed += 1
      },
      ...(mix ? { mix } : {}),
    },
  })
  const { service, load } = system
  await service.start()
  proxy = await CuttingProxy.start(context, () => service.port, context.random.fork(`${name}-cuts`), CUT_PERCENT)
  const enough = Promise.withResolvers<void>()
  proxy.onCut = () => {
    groupCommits.faultInjected(load.inFlight)
    if (proxy!.cuts % 500 === 0) context.progress(`${proxy!.cuts} cuts, ${load.acknowledged} acknowledged`)
    if (proxy!.cuts === cuts) enough.resolve()
  }
  const running = load.run()
  await Promise.race([enough.promise, running])
  await load.stop()
  await load.settle()
  const findings = await system.check()
  groupCommits.appended(readAppends(await service.metrics()))
  await service.stop()
  return { findings, proxy, replayed, groupCommits }
}
