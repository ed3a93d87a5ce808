// `bench intake`: the share of bare node:http's rate that is left when every message is validated, deduplicated and on
// disk.
// Starts the contestants, runs the sets of rounds, fills a store if requested, prints and writes the report.
// Promises: bounded in time; children and temporary folders are removed in any case.

import { mkdirSync } from 'node:fs'
import { resolve } from 'node:path'
import { type Contestant, startBare, startExpress } from './contestants/contestant.ts'
import { type Databases, startDatabases } from './contestants/databases.ts'
import { type Intray, startIntray } from './contestants/intray.ts'
import { type DrainReport, drainIndex, type FillReport, fillStore } from './intake/fill.ts'
import { INTAKE_HELP, type IntakeOptions, parseIntakeOptions } from './intake/options.ts'
import { formatReport, type IntakeReport, writeReport } from './intake/report.ts'
import { type Measurement, type Round, runRounds } from './intake/rounds.ts'
import { verdicts } from './intake/verdicts.ts'
import { LoadGenerator } from './load/generator.ts'
import { machineFacts, measureFsync } from './machine.ts'
import { isDisturbed } from './proc.ts'
import { Scope } from './scope.ts'

const FSYNCS = 500

export async function runIntake(argv: readonly string[]): Promise<number> {
  const options = parseIntakeOptions(argv)
  if (!options) {
    console.log(INTAKE_HELP)
    return 0
  }
  const scope = new Scope(options.folder)
  const limit = setTimeout(() => {
    say(`ended: --max-minutes ${options.maxMinutes} is over`)
    process.exit(1)
  }, options.maxMinutes * 60_000)
  try {
    const report = await new IntakeBench(options, scope).run()
    console.log(formatReport(report))
    console.log(`\nevery round: ${writeReport(report)}`)
    return options.strict && report.verdicts.some(({ pass }) => !pass) ? 1 : 0
  } finally {
    clearTimeout(limit)
    await scope.close()
  }
}

function say(line: string): void {
  process.stderr.write(`bench: ${line}\n`)
}

function sayMeasured(measurement: Measurement): void {
  const { round, connections, contestant, rate, p50Ms, errorCount, stealShare } = measurement
  const errors = errorCount > 0 ? `, ${errorCount} ERRORS` : ''
  const stolen = isDisturbed(measurement) ? `, ${(100 * stealShare!).toFixed(0)} % stolen` : ''
  const speed = `${rate.toFixed(0)}/s, p50 ${p50Ms.toFixed(3)} ms`
  say(`round ${round}, ${connections} conn, ${contestant}: ${speed}${errors}${stolen}`)
}

class IntakeBench {
  readonly #options: IntakeOptions
  readonly #scope: Scope
  readonly #load: LoadGenerator
  readonly #profileFolder: string | null

  constructor(options: IntakeOptions, scope: Scope) {
    this.#options = options
    this.#scope = scope
    this.#load = new LoadGenerator(scope)
    this.#profileFolder = options.profile === null ? null : resolve(options.profile)
    if (this.#profileFolder !== null) mkdirSync(this.#profileFolder, { recursive: true })
  }

  async run(): Promise<IntakeReport> {
    const { skip, fill, store } = this.#options
    const startedAt = new Date().toISOString()
    const fsyncBefore = measureFsync(this.#scope.folder, FSYNCS)
    const bare = skip.has('bare') ? null : await startBare(this.#scope)
    const databases = await startDatabases(store, this.#scope)
    const intray = skip.has('intray')
      ? null
      : await startIntray(this.#scope, databases, { profileFolder: this.#profileFolder })
    const two = skip.has('two') || store === 'sqlite' ? null : await startIntray(this.#scope, databases, { workers: 2 })
    const express = skip.has('express') ? null : await startExpress(this.#scope, databases)
    const contestants = [bare, intray, two, express].filter((contestant) => contestant !== null)

    const throughput = await this.#rounds(contestants, this.#options.connections)
    const latency = skip.has('latency') ? [] : await this.#rounds(contestants, 1)
    const drainShort = intray && fill === 0 && !skip.has('drain') ? await this.#burstAndDrain(intray) : null
    for (const { child } of [intray, two, express].filter((one) => one !== null)) await this.#scope.stop(child)
    const long = fill > 0 ? await this.#fill(bare, databases) : null
    await databases.close()

    const fsyncAfter = measureFsync(this.#scope.folder, FSYNCS)
    const results = {
      throughput,
      latency,
      fill: long?.fill ?? null,
      filled: long?.filled ?? [],
      drain: long?.drain ?? drainShort,
    }
    return {
      startedAt,
      finishedAt: new Date().toISOString(),
      machine: machineFacts(),
      settings: { ...this.#options, skip: [...skip] },
      fsyncBefore,
      fsyncAfter,
      ...results,
      verdicts: verdicts(store, results),
    }
  }

  #rounds(contestants: readonly Contestant[], connections: number): Promise<Round[]> {
    return runRounds(this.#load, contestants, { ...this.#options, connections }, this.#scope.folder, sayMeasured)
  }

  async #burstAndDrain(intray: Intray): Promise<DrainReport> {
    const { connections, seconds } = this.#options
    await this.#load.run({ port: intray.port, token: intray.token, connections, seconds, count: null })
    return drainIndex(intray)
  }

  /** In a fresh Intray, so that the memory marks are exact: the one of the rounds already holds some 100,000 events. */
  async #fill(
    bare: Contestant | null,
    databases: Databases,
  ): Promise<{ fill: FillReport; filled: readonly Round[]; drain: DrainReport | null }> {
    const { fill: events, connections, skip } = this.#options
    const intray = await startIntray(this.#scope, databases)
    const fill = await fillStore(this.#load, intray, events, connections, (stored) =>
      say(`filled ${stored.toLocaleString('en')} of ${events.toLocaleString('en')}`),
    )
    const drain = skip.has('drain') ? null : await drainIndex(intray)
    const filled = bare ? await this.#rounds([bare, intray], connections) : []
    await this.#scope.stop(intray.child)
    return { fill, filled, drain }
  }
}
