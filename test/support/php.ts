// PHP as Debian packages it, and scripts run with it.

import { spawnSync } from 'node:child_process'
import { runToEnd } from './command.ts'
import type { Finished } from './process.ts'

export const PHP_PACKAGES = ['php-cli', 'php-curl', 'php-mysql', 'php-pgsql', 'php-sqlite3', 'php-fpm'] as const
const EXTENSIONS = ['curl', 'pdo_sqlite', 'pdo_mysql', 'pdo_pgsql', 'mysqli', 'posix']

export function hasPhp(): boolean {
  const { status, stdout } = spawnSync('php', ['-m'], { encoding: 'utf8' })
  return status === 0 && EXTENSIONS.every((name) => stdout.split('\n').includes(name))
}

/** For `skip` of a test. */
export function missingPhp(): string | false {
  return !hasPhp() && 'not run: PHP with curl, PDO and MySQL is not installed'
}

/** Runs a script to its end. Values reach it through its environment. */
export function runPhp(script: string, env: Record<string, string> = {}): Promise<Finished> {
  return runToEnd(['php', '-d', 'display_errors=stderr', '-r', script], env)
}
