import assert from 'node:assert/strict'
import { test } from 'node:test'
import { command, UsageError } from '../../../src/cli/command.ts'

const calls: unknown[] = []
const sample = command({
  args: 'ID',
  about: 'Does the work of v1.2 of\nthe sample. The rest is detail.',
  flags: {
    account: { value: 'N', about: 'The account.', isRequired: true },
    tag: { value: 'T', about: `A tag; ${'many words '.repeat(20)}at the end.`, multiple: true },
    json: { about: 'Print JSON.' },
  },
  notes: 'The end.',
  async run(values, args) {
    calls.push([{ ...values }, args])
    return values.json ? 3 : 0
  },
})

test('the help of a command names its arguments, its required flags and every flag, in lines of at most 120 characters', () => {
  const help = sample.help('./intray sample')
  const lines = help.split('\n')
  assert.equal(lines[0], 'Usage: ./intray sample ID --account N [flags]')
  assert.ok(help.includes('\n  --account N  The account.\n  --tag T      A tag; many words'))
  assert.match(help, /\n {15}[a-z ]+at the end\.\n {2}--json {7}Print JSON\.\n\nThe end\.$/)
  assert.ok(lines.every((line) => line.length <= 120 && line === line.trimEnd()))
})

test('the first sentence of the description stands in the list of commands, in one line', () => {
  assert.equal(sample.summary, 'Does the work of v1.2 of the sample.')
})

test('a command gets the values of its flags and its arguments, and its exit code is the one that it returns', async () => {
  assert.equal(await sample.run(['7', '--tag', 'a', '--tag', 'b']), 0)
  assert.equal(await sample.run(['--json', '--account', '1', '8']), 3)
  assert.deepEqual(calls, [
    [{ tag: ['a', 'b'] }, ['7']],
    [{ json: true, account: '1' }, ['8']],
  ])
})

test('a missing or additional argument and an unknown flag are usage errors', async () => {
  for (const [args, message] of [
    [[], 'ID is missing.'],
    [['1', '2'], 'Unexpected argument "2".'],
    [['1', '--acount', '2'], 'There is no flag --acount. Did you mean --account?'],
    [['1', '--json=yes'], '--json takes no value.'],
    [['1', '--account'], '--account needs a value.'],
  ] as const) {
    await assert.rejects(sample.run(args), (error: unknown) => error instanceof UsageError && error.message === message)
  }
})
