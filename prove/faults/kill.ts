// `prove kill`: SIGKILL under load, again and again on one database, while a group of messages is being stored. A cycle is
// one kill.
// Claim: what was acknowledged is there, once and unaltered; what was not told is there once after it was sent again.
// Control: a server that acknowledges before it commits must be found to have lost messages.

import { fileURLToPath } from 'node:url'
import { GROUP_CONNECTIONS, readAppends, Strikes, untilGroupInFlight } from '../group-commit.ts'
import type { ControlResult, Proof, ProofContext } from '../proof.ts'
import { brokenIn, inWords, newSubject, type Subject } from '../subject.ts'

const UNSAFE_SERVER = fileURLToPath(new URL('../../test/support/unsafe-server.ts', import.meta.url))
const CONTROL_KILLS = 20

export const kill: Proof = {
  name: 'kill',
  about: 'SIGKILL of the service under load',
  needs: '',
  stores: ['sqlite', 'postgres'],
  defaultCycles: 100,
  async run(context) {
    const killer = new Killer(context)
    const subject = await newSubject(context, { name: 'kill', service: { hasMetrics: true }, load: killer.load })
    const { service, load } = subject
    for (let cycle = 1; cycle <= context.cycles; cycle += 1) {
      await service.start()
      // What the last kill left open is sent again first, under this server's own load of re-sends.
      await load.settle()
      await killer.killUnderLoad(subject)
      if (cycle % 10 === 0)
        context.progress(`${cycle} kills, ${load.acknowledged} acknowledged, ${load.unknown} unknown`)
    }
    await service.start()
    await load.settle()
    context.progress('reading everything back')
    const findings = await subject.check()
    await service.stop()
    return {
      counts: { ...findings.counts, faults: killer.kills },
      notes: [...killer.strikes.notes(), `${killer.repeated} re-sends were answered "duplicate".`],
      broken: [
        ...brokenIn(findings),
        ...killer.strikes.problems(),
        ...(findings.counts.unknown > 0 ? [] : ['no kill left a sender without an answer']),
      ],
      controls: [await control(context)],
    }
  },
}

async function control(context: ProofContext): Promise<ControlResult> {
  const killer = new Killer(context)
  const service = { command: [process.execPath, UNSAFE_SERVER] }
  const subject = await newSubject(context, { name: 'control', service, load: killer.load })
  let found = ''
  let lost = 0
  while (lost === 0 && killer.kills < CONTROL_KILLS) {
    await subject.service.start()
    await killer.killUnderLoad(subject)
    await subject.service.start()
    const findings = await subject.check()
    await subject.service.kill()
    lost = findings.counts.lost
    found = inWords(findings)
  }
  context.progress(`control: ${found}`)
  const about = 'a server that acknowledges before it commits'
  return { about, failed: lost > 0, detail: `${killer.kills} kills, ${found}` }
}

class Killer {
  kills = 0
  readonly strikes = new Strikes('a kill')
  repeated = 0
  readonly #context: ProofContext
  #onAcknowledged = () => {}

  constructor(context: ProofContext) {
    this.#context = context
  }

  get load() {
    return {
      connections: GROUP_CONNECTIONS,
      onTrouble: 'end' as const,
      onAcknowledged: () => this.#onAcknowledged(),
      onAnswer: ({ duplicate }: { readonly duplicate: boolean }) => {
        if (duplicate) this.repeated += 1
      },
    }
  }

  /** Kills after a random number of acknowledgements, when a group is in flight. */
  async killUnderLoad({ service, load }: Subject): Promise<void> {
    const { random } = this.#context
    let left = 10 + random.below(400)
    const enough = Promise.withResolvers<void>()
    this.#onAcknowledged = () => {
      left -= 1
      if (left === 0) enough.resolve()
    }
    const running = load.run()
    await enough.promise
    if (service.options.hasMetrics) this.strikes.appended(readAppends(await service.metrics()))
    await untilGroupInFlight(load, random)
    this.kills += 1
    this.strikes.struck(load.inFlight)
    await service.kill()
    await running
    this.#onAcknowledged = () => {}
  }
}
