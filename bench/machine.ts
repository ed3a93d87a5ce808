// Facts of the machine, and the cost of one fsync on it.
// Promises: `measureFsync` writes as a journal does (append 4 KiB, fdatasync) in the given folder.

import { closeSync, fdatasyncSync, openSync, rmSync, writeSync } from 'node:fs'
import { cpus, release, totalmem, type } from 'node:os'
import { join } from 'node:path'
import { percentile } from './stats.ts'

export interface MachineFacts {
  readonly cpu: string
  readonly cores: number
  readonly memoryMiB: number
  readonly kernel: string
  readonly arch: string
  readonly node: string
}

export function machineFacts(): MachineFacts {
  const cores = cpus()
  return {
    cpu: cores[0]?.model.trim() ?? 'unknown',
    cores: cores.length,
    memoryMiB: Math.round(totalmem() / 2 ** 20),
    kernel: `${type()} ${release()}`,
    arch: process.arch,
    node: process.version,
  }
}

export interface FsyncCost {
  readonly times: number
  readonly p50Ms: number
  readonly p99Ms: number
}

export function measureFsync(folder: string, times: number): FsyncCost {
  const path = join(folder, 'fsync-probe')
  const page = Buffer.alloc(4096, 0x5a)
  const file = openSync(path, 'w')
  const tookMs: number[] = []
  try {
    for (let i = 0; i < times; i++) {
      const startedAt = performance.now()
      writeSync(file, page)
      fdatasyncSync(file)
      tookMs.push(performance.now() - startedAt)
    }
  } finally {
    closeSync(file)
    rmSync(path)
  }
  return { times, p50Ms: percentile(tookMs, 0.5), p99Ms: percentile(tookMs, 0.99) }
}
