// A database that is about to be checkpointed: so much is in its WAL that one of the next commits moves all of it into the
// database file. Copied for each run, so that every run meets a commit and a checkpoint within few calls.
// SQLite only.

import { cpSync, mkdirSync, rmSync, statSync } from 'node:fs'
import http from 'node:http'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { CHECKPOINT_PAGES, JOURNAL_PAGE_BYTES } from '../src/store/sqlite/connection.ts'
import { Inbox } from './inbox.ts'
import type { ProofContext } from './proof.ts'
import { Service } from './service.ts'

/** A page and the 24 bytes before it; the WAL begins with 32 bytes of its own. */
const FRAME_BYTES = JOURNAL_PAGE_BYTES + 24
const LARGE_FRAMES = 270
/** Filled up to so many less in small steps: a small message takes about 5. */
const SMALL_FRAMES = 8
/** Left for the start of a server, which writes a little, and for the first commit. */
const MARGIN_FRAMES = 12
/** The ballast belongs to somebody else: nobody counts it. */
const BALLAST_TENANT = { account: 7, company: 43 } as const

export class NearCheckpoint {
  readonly token: string
  readonly processorToken: string
  /** For every service of the proof: hundreds are started, and compiling is most of a start. */
  readonly env: Readonly<Record<string, string>>
  readonly #folder: string

  private constructor(folder: string, env: NearCheckpoint['env'], token: string, processorToken: string) {
    this.#folder = folder
    this.env = env
    this.token = token
    this.processorToken = processorToken
  }

  static async create(context: Pick<ProofContext, 'folder' | 'onCleanup'>): Promise<NearCheckpoint> {
    const folder = join(context.folder, 'near-checkpoint')
    mkdirSync(folder)
    const env = { NODE_COMPILE_CACHE: join(context.folder, 'compile-cache') }
    const service = new Service(context, { databaseUrl: urlOf(folder), env })
    const made = new NearCheckpoint(folder, env, await service.mint('cf'), await service.mint('processor'))
    const ballastToken = await service.mint('cf', BALLAST_TENANT)
    const readerToken = await service.mint('processor', BALLAST_TENANT)
    await service.start()
    const inbox = new Inbox(() => service.port, readerToken)
    const frames = () => Math.floor((statSync(join(folder, 'intray.db-wal')).size - 32) / FRAME_BYTES)
    const fill = async (text: string, most: number) => {
      while (frames() < CHECKPOINT_PAGES.journal - MARGIN_FRAMES - most) {
        await post(service.port, ballastToken, `{"message":{"type":"ballast"},"meta":"${text}"}`)
      }
    }
    await fill('x'.repeat(1_000_000), LARGE_FRAMES)
    await fill('', SMALL_FRAMES)
    // So that the index has nothing to catch up with in the runs.
    await inbox.rows()
    inbox.close()
    // A stop would checkpoint.
    await service.kill()
    return made
  }

  /** Starts a service on a copy so that the WAL stays: a connection that is the last to be closed would checkpoint. */
  async startOn(folder: string, service: Service): Promise<void> {
    const beside = new DatabaseSync(join(folder, 'intray.db'), { readOnly: true })
    beside.prepare('SELECT count(*) FROM sqlite_master').get()
    try {
      await service.start()
    } finally {
      beside.close()
    }
  }

  /** A copy for one run; returns its URL. */
  copyTo(folder: string): string {
    rmSync(folder, { recursive: true, force: true })
    // What is shared in memory is made anew.
    cpSync(this.#folder, folder, { recursive: true, filter: (path) => !path.endsWith('-shm') })
    return urlOf(folder)
  }
}

function urlOf(folder: string): string {
  return `sqlite:${join(folder, 'intray.db')}`
}

function post(port: number, token: string, body: string): Promise<void> {
  return new Promise((resolve, reject) => {
    const headers = { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' }
    const req = http.request({ host: '127.0.0.1', port, method: 'POST', path: '/v1/inbox/events', headers }, (res) => {
      res.resume()
      res.on('end', () =>
        res.statusCode === 200 ? resolve() : reject(new Error(`ballast answered ${res.statusCode}`)),
      )
    })
    req.on('error', reject)
    req.end(body)
  })
}
