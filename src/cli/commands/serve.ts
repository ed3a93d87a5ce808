// `./intray serve`: runs the service until a signal stops it.

import cluster from 'node:cluster'
import { type App, startApp } from '../../app.ts'
import {
  type Config,
  ConfigError,
  defaultText,
  flagName,
  loadConfig,
  printConfig,
  SETTING_NAMES,
  SETTINGS,
  type SettingName,
  tlsFiles,
} from '../../config.ts'
import { systemClock } from '../../runtime/clock.ts'
import { KeyPairRefused, readKeyPair } from '../../runtime/key-pair.ts'
import { createLog, errorText, type Log } from '../../runtime/log.ts'
import { loadSdk, SdkMissing } from '../../runtime/otlp-export.ts'
import { redactText } from '../../runtime/redact.ts'
import type { Store } from '../../store/contract/store.ts'
import { openStore } from '../../store/open.ts'
import { announce } from '../serve/announce.ts'
import { BackupSchedule } from '../serve/backup-schedule.ts'
import { command, CommandError } from '../command.ts'
import { listenFdProblem, takeListenFd, workerListenFd } from '../serve/listen-socket.ts'
import { runWorkers, STOP_MESSAGE, type WorkerMessage, workerSlot } from '../serve/workers.ts'

/** Time for the last answers after a fatal failure. */
const FAIL_STOP_GRACE_MS = 500

export const serve = command({
  about: 'Runs the service. Every flag is also an environment variable: --max-body-bytes is INTRAY_MAX_BODY_BYTES.',
  flags: {
    'print-config': { about: 'Print the settings in effect, without secrets, and exit.' },
    ...Object.fromEntries(SETTING_NAMES.map((name) => [flagName(name), settingFlag(name)])),
  },
  async run(values) {
    const passedFd = takeListenFd(process.env, process.pid)
    const config = loadConfig(process.env, settingFlags(values))
    if (values['print-config']) {
      process.stdout.write(`${printConfig(config)}\n`)
      return 0
    }
    checkKeyPair(config)
    await checkTraces(config)
    const log = createLog({ level: config.logLevel, format: config.logFormat })
    if (cluster.isWorker) return runWorker(config, log, workerListenFd(process.env))
    return config.workers === 1 ? runServer(config, log, passedFd) : runWorkers(config, log, passedFd)
  },
})

/** Before anything is made or opened. */
function checkKeyPair(config: Config): void {
  const files = tlsFiles(config)
  try {
    if (files) readKeyPair(files)
  } catch (error) {
    throw error instanceof KeyPairRefused ? new ConfigError(error.problems) : error
  }
}

async function checkTraces({ otlpEndpoint }: Config): Promise<void> {
  try {
    if (otlpEndpoint !== null) await loadSdk()
  } catch (error) {
    throw error instanceof SdkMissing ? new ConfigError([error.message]) : error
  }
}

async function runServer(config: Config, log: Log, listenFd: number | null): Promise<number> {
  const store = await openStore(config.databaseUrl, { role: 'server' })
  const app = withBackups(await listen({ config, store, log, listenFd }), { config, store, log })
  const ended = untilEnded(app, store, log)
  try {
    await announce(store, { address: app.address, config, logger: log.logger })
  } catch (error) {
    await app.stop()
    throw error
  }
  return ended
}

interface Start {
  readonly config: Config
  readonly store: Store
  readonly log: Log
  readonly listenFd: number | null
}

/** Starts the schedule of backups, which ends before the store does. */
function withBackups(app: App, { config, store, log }: { config: Config; store: Store; log: Log }): App {
  const schedule = new BackupSchedule({ config, recovery: store.recovery, clock: systemClock, logger: log.logger })
  schedule.start()
  return {
    address: app.address,
    stop: async () => {
      await schedule.stop()
      await app.stop()
    },
  }
}

/** Runs one of several workers; the primary process (cli/workers.ts) starts, stops and replaces it. */
async function runWorker(config: Config, log: Log, listenFd: number | null): Promise<number> {
  const store = await openStore(config.databaseUrl, { role: 'server' })
  const app = await listen({ config: withMetricsOf(config, workerSlot()), store, log, listenFd })
  process.send?.({ listening: app.address } satisfies WorkerMessage)
  return untilEnded(app, store, log)
}

/** Metrics belong to a process, so each worker serves them on a port of its own. */
function withMetricsOf(config: Config, slot: number): Config {
  const { metrics } = config
  if (metrics === null || metrics.port === 0) return config
  return { ...config, metrics: { ...metrics, port: metrics.port + slot } }
}

async function listen({ config, store, log, listenFd }: Start): Promise<App> {
  try {
    return await startApp({ config, store, logger: log.logger, listenFd })
  } catch (error) {
    await store.close()
    const problem = listenFd === null ? null : listenFdProblem(error)
    if (problem) throw problem
    const { code } = error as NodeJS.ErrnoException
    if (code === 'EADDRINUSE') {
      throw new CommandError(
        `Port ${config.port} on ${config.host} is in use by another program. Stop it, or choose another port: ./intray serve --port 8081`,
      )
    }
    if (code === 'EACCES')
      throw new CommandError(
        `This user may not listen on port ${config.port}. Choose one above 1023: ./intray serve --port 8080`,
      )
    if (code === 'EADDRNOTAVAIL' || code === 'ENOTFOUND') {
      throw new CommandError(`${config.host} is not an address of this machine. Set INTRAY_HOST to one that is.`)
    }
    throw error
  }
}

/** The exit code: 0 after a graceful stop. A second signal or a fatal failure ends the process at once, with 1. */
function untilEnded(app: App, store: Store, log: Log): Promise<number> {
  const { logger } = log
  const end = (code: number) => log.flush().then(() => process.exit(code))
  return new Promise(() => {
    let signalled = false
    const onStop = (signal: string) => {
      if (signalled) {
        logger.warn('second signal: stopping at once', { signal })
        void end(1)
        return
      }
      signalled = true
      app.stop().then(
        () => end(0),
        (error: unknown) => {
          logger.fatal('could not stop gracefully', { error: errorText(error) })
          return end(1)
        },
      )
    }
    onStopRequest(onStop)
    store.onFatal((failure) => {
      logger.fatal('the storage can no longer be trusted; stopping', { error: failure.message })
      setTimeout(() => void end(1), FAIL_STOP_GRACE_MS)
    })
    process.on('uncaughtException', (error) => {
      logger.fatal('unexpected failure; stopping', { error: errorText(error), stack: redactText(error.stack ?? '') })
      void end(1)
    })
  })
}

/** A worker ignores signals and obeys the primary process: a signal to the process group would reach it twice. */
function onStopRequest(listener: (signal: string) => void): void {
  const fromSignal = (signal: NodeJS.Signals) => (cluster.isWorker ? undefined : listener(signal))
  process.on('SIGTERM', fromSignal)
  process.on('SIGINT', fromSignal)
  process.on('message', (message) => message === STOP_MESSAGE && listener(STOP_MESSAGE))
}

function settingFlag(name: SettingName) {
  return { value: '', about: `${SETTINGS[name].about} [${defaultText(name)}]` }
}

function settingFlags(values: Record<string, unknown>): Partial<Record<SettingName, string>> {
  const flags: Partial<Record<SettingName, string>> = {}
  for (const name of SETTING_NAMES) {
    const value = values[flagName(name)]
    if (typeof value === 'string') flags[name] = value
  }
  return flags
}
