// Where a backup is written: first beside its place as `.part`, with mode 600; renamed when it is whole, so that a file without
// `.part` is always a complete backup. In a folder, backups are named by time, and old ones can be removed.

import { closeSync, existsSync, openSync, readdirSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { basename, dirname, join, resolve } from 'node:path'
import { syncPath } from '../../runtime/sync-path.ts'
import { CommandError } from '../command.ts'
import { digestFile, sha256Of } from './backup-check.ts'

/** The name of a backup in a folder. Text order is time order. */
const NAME = /^intray-\d{8}T\d{6}Z\.(db|dump)$/
const PART = /^(intray-\d{8}T\d{6}Z\.(?:db|dump))\.part(\.sha256)?$/

export interface BackupTarget {
  readonly file: string
  readonly part: string
  /** The folder whose backups are named by time; null if the user named the file. */
  readonly folder: string | null
}

/** Refuses a file that exists. */
export function targetOf(path: string, extension: string, now: number): BackupTarget {
  const isFolder = statSync(path, { throwIfNoEntry: false })?.isDirectory() === true
  if (!isFolder && path.endsWith('/')) throw new CommandError(`There is no folder ${path}. Create it first.`)
  const file = isFolder ? join(path, nameAt(now, extension)) : path
  if (existsSync(file)) throw new CommandError(`${file} exists, and a backup overwrites nothing. Give another name.`)
  if (!existsSync(dirname(resolve(file))))
    throw new CommandError(`There is no folder ${dirname(file)}. Create it first.`)
  return { file, part: `${file}.part`, folder: isFolder ? path : null }
}

/** 2026-11-18T03:04:05.678Z → intray-20261118T030405Z.db */
function nameAt(now: number, extension: string): string {
  const text = new Date(now).toISOString().replace(/\.\d+/, '').replaceAll(/[-:]/g, '')
  return `intray-${text}${extension}`
}

/** Empty, for this user alone. A part that is there was left by a backup that was interrupted. Answers with its inode. */
export function createPart({ part }: BackupTarget): number {
  rmSync(part, { force: true })
  closeSync(openSync(part, 'wx', 0o600))
  return statSync(part).ino
}

/** Syncs the part and writes its digest beside it. */
export async function sealPart({ file, part }: BackupTarget): Promise<string> {
  syncPath(part, 'r+')
  const sha256 = await sha256Of(part)
  writeFileSync(digestFile(part), `${sha256}  ${basename(file)}\n`, { mode: 0o600, flush: true })
  return sha256
}

/** Gives a whole backup its name, unless another command has begun to write the same part meanwhile. */
export function publish({ file, part }: BackupTarget, inode: number): void {
  if (statSync(part, { throwIfNoEntry: false })?.ino !== inode) {
    throw new CommandError(`Another command writes a backup to ${file} now. This one was not kept.`)
  }
  if (existsSync(file))
    throw new CommandError(`${file} appeared meanwhile, and a backup overwrites nothing. Give another name.`)
  renameSync(digestFile(part), digestFile(file))
  renameSync(part, file)
  syncPath(dirname(resolve(file)))
}

/** Unless it is the part of another command by now. */
export function removePart({ part }: BackupTarget, inode: number): void {
  if (statSync(part, { throwIfNoEntry: false })?.ino !== inode) return
  rmSync(part, { force: true })
  rmSync(digestFile(part), { force: true })
}

/**
 * Removes all but the newest backups of a folder, and what interrupted ones left before them. Answers with the backups that are
 * gone.
 */
export function removeOld(folder: string, keep: number): string[] {
  const all = readdirSync(folder)
  const names = all.filter((name) => NAME.test(name)).toSorted()
  const newest = names.at(-1) ?? ''
  for (const name of all) if ((PART.exec(name)?.[1] ?? newest) < newest) rmSync(join(folder, name), { force: true })
  const old = names.slice(0, -keep).map((name) => join(folder, name))
  for (const file of old) {
    rmSync(file, { force: true })
    rmSync(digestFile(file), { force: true })
  }
  return old
}
