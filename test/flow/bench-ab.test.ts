// `bench ab`: its options, its ratios, and the other commit on disk.

import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { existsSync, lstatSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { WorkBeside } from '../../bench/ab/beside.ts'
import { addPackages, findCommit, hasChanges, writeCommit } from '../../bench/ab/checkout.ts'
import { compare } from '../../bench/ab/compare.ts'
import { parseAbOptions } from '../../bench/ab/options.ts'
import type { Intray } from '../../bench/contestants/intray.ts'
import { Scope } from '../../bench/scope.ts'
import { UsageError } from '../../bench/usage-error.ts'
import { tempFolder } from '../support/temp.ts'

test('without --only a store is measured in every scenario it has', () => {
  assert.deepEqual(parseAbOptions(['--against', 'HEAD'])?.scenarios, ['burst', 'sustained'])
  const all = parseAbOptions(['--against', 'HEAD', '--store', 'postgres'])
  assert.deepEqual(all?.scenarios, ['burst', 'two', 'sustained'])
  assert.equal(parseAbOptions(['--against', 'HEAD', '--only', 'sustained'])?.scenarios.join(), 'sustained')
})

test('help needs no commit', () => {
  assert.equal(parseAbOptions(['--help']), null)
})

const REFUSED: Record<string, [args: string[], sentence: RegExp]> = {
  'no commit': [[], /--against <commit>/],
  'a scenario that is not known': [['--against', 'HEAD', '--only', 'bursts'], /burst, two, sustained, not "bursts"/],
  'two processes on a file': [['--against', 'HEAD', '--only', 'two'], /needs --store postgres/],
  'half a round': [['--against', 'HEAD', '--rounds', '1.5'], /--rounds must be a whole number/],
  'no seconds': [['--against', 'HEAD', '--seconds', '0'], /--seconds must be a number from 0.5/],
  'something beside it that is not known': [
    ['--against', 'HEAD', '--beside', 'tea'],
    /--beside knows backup, retention, not "tea"/,
  ],
  'an unknown option': [['--against', 'HEAD', '--fast'], /Unknown option/],
}
for (const [name, [args, sentence]] of Object.entries(REFUSED)) {
  test(`refused with a sentence: ${name}`, () => {
    assert.throws(
      () => parseAbOptions(args),
      (error) => error instanceof UsageError && sentence.test(error.message),
    )
  })
}

test('the ratio is the median of the ratios inside the rounds, not that of the medians', () => {
  // The machine was half as fast in the second round, and A was measured there at its best.
  const { a, b, ratio, ofMedians, ofMeans } = compare([
    { a: 80, b: 100 },
    { a: 60, b: 50 },
    { a: 90, b: 100 },
  ])
  assert.deepEqual([a, b], [80, 100])
  assert.deepEqual(ratio, { median: 0.9, min: 0.8, max: 1.2 })
  assert.equal(ofMedians, 0.8)
  assert.equal(ofMeans.toFixed(2), '0.92')
})

test('no rounds give no ratio', () => {
  assert.ok(Number.isNaN(compare([]).ratio.median))
})

test('what runs beside a measurement runs again and again, and has ended after it', async () => {
  const calls: (readonly string[])[] = []
  let underWay = 0
  const enough = Promise.withResolvers<void>()
  const cli = async (args: readonly string[]) => {
    calls.push(args)
    underWay += 1
    await new Promise((resolve) => setImmediate(resolve))
    underWay -= 1
    if (calls.length === 3) enough.resolve()
    return {}
  }
  const intray = { cli } as unknown as Intray
  const { measured, turns } = await new WorkBeside(['backup'], intray, tempFolder('beside')).during(async () => {
    await enough.promise
    return 'measured'
  })
  assert.deepEqual([measured, underWay, turns], ['measured', 0, calls.length])
  assert.ok(turns >= 3)
  assert.equal(new Set(calls.map(([, file]) => file)).size, turns, 'each has a file of its own')

  const fails = { cli: () => Promise.reject(new Error('no disk')) } as unknown as Intray
  await assert.rejects(
    new WorkBeside(['backup'], fails, tempFolder('beside')).during(async () => 1),
    /no disk/,
  )
})

/** A repository with two commits and a change that is in neither. */
function repository(): string {
  const root = tempFolder('ab-repository')
  const git = (...args: string[]) =>
    execFileSync('git', ['-c', 'user.name=Test', '-c', 'user.email=test@example.org', ...args], { cwd: root })
  git('init', '--quiet')
  mkdirSync(join(root, 'src'))
  writeFileSync(join(root, '.gitignore'), 'node_modules\n')
  writeFileSync(join(root, 'package-lock.json'), '{}')
  writeFileSync(join(root, 'src/main.ts'), 'first')
  git('add', '.')
  git('commit', '--quiet', '-m', 'one')
  writeFileSync(join(root, 'src/main.ts'), 'second')
  git('commit', '--quiet', '-am', 'two')
  mkdirSync(join(root, 'node_modules'))
  writeFileSync(join(root, 'node_modules/installed'), '')
  writeFileSync(join(root, 'src/main.ts'), 'third')
  return root
}

test('a commit is written beside the repository, which stays as it is, with the packages that are installed', async () => {
  const root = repository()
  const scope = new Scope(tempFolder('ab'))
  try {
    const folder = join(scope.folder, 'other')
    await writeCommit(root, await findCommit(root, 'HEAD~1'), folder)
    assert.equal(readFileSync(join(folder, 'src/main.ts'), 'utf8'), 'first')
    assert.equal(await addPackages(scope, root, folder), 'linked')
    assert.ok(existsSync(join(folder, 'node_modules/installed')))
    assert.ok(lstatSync(join(folder, 'node_modules')).isSymbolicLink())
    assert.equal(readFileSync(join(root, 'src/main.ts'), 'utf8'), 'third')
    const worktrees = execFileSync('git', ['worktree', 'list'], { cwd: root, encoding: 'utf8' })
    assert.equal(worktrees.trim().split('\n').length, 1)
  } finally {
    await scope.close()
  }
  assert.ok(existsSync(join(root, 'node_modules/installed')), 'the link is removed, not what it leads to')
  assert.equal(await hasChanges(root), true)
})

test('a commit that is not there is refused with a sentence', async () => {
  const root = repository()
  await assert.rejects(findCommit(root, 'nosuch'), (error) => {
    return error instanceof UsageError && /there is no commit "nosuch"/.test(error.message)
  })
  rmSync(join(root, '.git'), { recursive: true })
  await assert.rejects(findCommit(root, 'HEAD'), UsageError)
})
