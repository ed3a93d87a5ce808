// The launcher `./intray`: what it gives Node before the program runs.

import assert from 'node:assert/strict'
import { copyFileSync, globSync, mkdirSync, readdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { test } from 'node:test'
import { runToEnd } from '../support/command.ts'
import { LAUNCHER } from '../support/process.ts'
import { tempFolder } from '../support/temp.ts'

const ROOT = dirname(LAUNCHER)

/** A checkout with the sources and packages of this one, and nothing compiled. */
function checkout(): { launcher: string; modules: string } {
  const folder = tempFolder('checkout')
  const modules = join(folder, 'node_modules')
  mkdirSync(modules)
  copyFileSync(LAUNCHER, join(folder, 'intray'))
  for (const name of ['src', 'package.json']) symlinkSync(join(ROOT, name), join(folder, name))
  for (const name of readdirSync(join(ROOT, 'node_modules')).filter((one) => !one.startsWith('.')))
    symlinkSync(join(ROOT, 'node_modules', name), join(modules, name))
  return { launcher: join(folder, 'intray'), modules }
}

const compiled = (folder: string) => globSync('**/*', { cwd: folder }).length

test('what Node compiled is kept beside the packages, or where NODE_COMPILE_CACHE says', async () => {
  const { launcher, modules } = checkout()
  const elsewhere = tempFolder('compiled')
  const run = (folder: string) => runToEnd([launcher, 'token', '--help'], { NODE_COMPILE_CACHE: folder })
  assert.equal((await run(elsewhere)).code, 0)
  assert.ok(compiled(elsewhere) > 3)
  assert.equal(compiled(join(modules, '.cache')), 0)
  assert.equal((await run('')).code, 0)
  assert.ok(compiled(join(modules, '.cache', 'intray')) > 3)
})

test('a folder that cannot be made does not matter', async () => {
  const { launcher, modules } = checkout()
  writeFileSync(join(modules, '.cache'), 'a file')
  const { code, stdout, stderr } = await runToEnd([launcher, '--version'], { NODE_COMPILE_CACHE: '' })
  assert.deepEqual([code, stderr], [0, ''])
  assert.match(stdout.toString(), /^intray \d/)
})
