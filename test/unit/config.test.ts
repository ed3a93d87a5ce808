import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import {
  ConfigError,
  defaultText,
  flagName,
  loadConfig,
  printConfig,
  SETTING_NAMES,
  SETTINGS,
  variableName,
} from '../../src/config.ts'
import { tempFolder } from '../support/temp.ts'

/** The problems that a load reports. */
function problemsOf(environment: Record<string, string>, flags: Record<string, string> = {}): readonly string[] {
  try {
    loadConfig(environment, flags)
  } catch (error) {
    assert.ok(error instanceof ConfigError)
    assert.equal(error.message, error.problems.join('\n'))
    return error.problems
  }
  return []
}

function secretFile(text: string): string {
  const file = join(tempFolder('config'), 'secret')
  writeFileSync(file, text)
  return file
}

describe('settings', () => {
  test('have their defaults when nothing is said', () => {
    const config = loadConfig({})
    assert.equal(config.host, '127.0.0.1')
    assert.equal(config.port, 8080)
    assert.equal(config.databaseUrl, 'sqlite:./data/intray.db')
    assert.equal(config.maxBodyBytes, 1_048_576)
    assert.equal(config.intakeScopes, null)
    assert.equal(config.legacyTester, 'on')
    for (const name of SETTING_NAMES) assert.deepEqual(config[name], SETTINGS[name].fallback, name)
  })

  test('are read from the environment, then from flags, which win', () => {
    assert.equal(loadConfig({ INTRAY_PORT: '9000' }).port, 9000)
    assert.equal(loadConfig({ INTRAY_PORT: '9000' }, { port: '9001' }).port, 9001)
    assert.equal(loadConfig({ INTRAY_PORT: '9000' }, { maxBodyBytes: '2048' }).port, 9000)
  })

  test('have one name in the environment and one as a flag', () => {
    assert.equal(variableName('maxBodyBytes'), 'INTRAY_MAX_BODY_BYTES')
    assert.equal(flagName('maxBodyBytes'), 'max-body-bytes')
    assert.equal(variableName('host'), 'INTRAY_HOST')
    assert.equal(new Set(SETTING_NAMES.map(variableName)).size, SETTING_NAMES.length)
  })

  test('are frozen', () => {
    const config = loadConfig({})
    assert.ok(Object.isFrozen(config))
    assert.throws(() => {
      ;(config as { port: number }).port = 1
    }, TypeError)
  })

  test('that are empty count as not set', () => {
    assert.equal(loadConfig({ INTRAY_PORT: '' }).port, 8080)
    assert.equal(loadConfig({ INTRAY_INTAKE_SCOPES: '' }).intakeScopes, null)
  })

  test('of other programs are left alone', () => {
    assert.doesNotThrow(() => loadConfig({ PATH: '/bin', PORT: '1', INTRAY: 'x', MY_INTRAY_PORT: 'x' }))
  })

  test('are reported all at once, each with its name', () => {
    const problems = problemsOf({
      INTRAY_PORT: '99999',
      INTRAY_LOG_LEVEL: 'loud',
      INTRAY_STOP_TIMEOUT: 'soon',
      INTRAY_INTAKE_SCOPES: 'cf,Not A Scope',
      INTRAY_PROT: '1',
    })
    assert.equal(problems.length, 5)
    for (const name of [
      'INTRAY_PORT ',
      'INTRAY_LOG_LEVEL ',
      'INTRAY_STOP_TIMEOUT ',
      'INTRAY_INTAKE_SCOPES ',
      'INTRAY_PROT ',
    ]) {
      assert.equal(problems.filter((problem) => problem.startsWith(name)).length, 1, name)
    }
  })

  test('that are wrong as a flag are reported as a flag', () => {
    assert.match(problemsOf({}, { maxBodyBytes: 'x' })[0]!, /^--max-body-bytes must be /)
  })

  test('that are misspelt stop the start and are told the nearest name', () => {
    assert.deepEqual(problemsOf({ INTRAY_MAX_BODY_BYTE: '1' }), [
      'INTRAY_MAX_BODY_BYTE is not a setting. Did you mean INTRAY_MAX_BODY_BYTES?',
    ])
    assert.match(problemsOf({ INTRAY_DATABASE_URI: 'x' })[0]!, /Did you mean INTRAY_DATABASE_URL\?/)
    assert.match(problemsOf({ INTRAY_DATABASE_URL_FILES: 'x' })[0]!, /Did you mean INTRAY_DATABASE_URL_FILE\?/)
  })

  test('of senders on the same machine are no mistake, and a misspelt one still is', () => {
    const ofSenders = ['INTRAY_URL', 'INTRAY_TOKEN', 'INTRAY_OUTBOX', 'INTRAY_OUTBOX_USER', 'INTRAY_OUTBOX_PASSWORD']
    assert.deepEqual(problemsOf(Object.fromEntries(ofSenders.map((name) => [name, 'x']))), [])
    assert.equal(problemsOf({ INTRAY_TOKENS: 'x' }).length, 1)
  })

  test('do not repeat a wrong value that may be a secret', () => {
    const url = 'postgres://user:HUNTER2@host/db'
    const problems = problemsOf({ INTRAY_DATABASE_URL: url, INTRAY_DATABASE_URL_FILE: '/x', INTRAY_PORT: 'x' })
    assert.doesNotMatch(problems.join('\n'), /HUNTER2/)
  })
})

describe('kinds of settings', () => {
  test('whole numbers stay in their bounds', () => {
    for (const good of ['0', '1', '65535', ' 80 ']) assert.equal(loadConfig({ INTRAY_PORT: good }).port, Number(good))
    for (const bad of ['-1', '65536', '1.5', '1e3', '0x10', 'eighty', '8080x', '99999999999999999999', 'NaN', '+1']) {
      assert.deepEqual(problemsOf({ INTRAY_PORT: bad }), ['INTRAY_PORT must be a whole number from 0 to 65535.'], bad)
    }
  })

  test('durations are read and written as people write them', () => {
    assert.equal(loadConfig({ INTRAY_STOP_TIMEOUT: '250ms' }).stopTimeout, 250)
    assert.equal(loadConfig({ INTRAY_REFUSALS_MAX_AGE: '2d' }).refusalsMaxAge, 172_800_000)
    for (const bad of ['5', 's', '1.5s', '-1s', '1 s', '1w', '1S']) {
      assert.equal(problemsOf({ INTRAY_STOP_TIMEOUT: bad }).length, 1, bad)
    }
  })

  test('choices are one of a list', () => {
    assert.equal(loadConfig({ INTRAY_LEGACY_TESTER: 'off' }).legacyTester, 'off')
    assert.match(problemsOf({ INTRAY_LEGACY_TESTER: 'no' })[0]!, /must be one of on, off/)
  })

  test('scopes are a list', () => {
    assert.deepEqual(loadConfig({ INTRAY_INTAKE_SCOPES: 'cf, bot ,a.b:c-d_e' }).intakeScopes, [
      'cf',
      'bot',
      'a.b:c-d_e',
    ])
    for (const bad of ['cf,', 'CF', 'cf bot', '-x', 'x'.repeat(65), ',']) {
      assert.equal(problemsOf({ INTRAY_INTAKE_SCOPES: bad }).length, 1, bad)
    }
  })

  test('a rate is so many requests in a time, or off', () => {
    assert.equal(loadConfig({}).rateLimit, null)
    assert.deepEqual(loadConfig({ INTRAY_RATE_LIMIT: '100/1s' }).rateLimit, { requests: 100, windowMs: 1000 })
    assert.equal(loadConfig({ INTRAY_FAILED_TOKEN_LIMIT: 'off' }).failedTokenLimit, null)
    assert.match(
      problemsOf({ INTRAY_RATE_LIMIT: '100' })[0]!,
      /INTRAY_RATE_LIMIT must be off or a rate such as 100\/1s/,
    )
  })

  test('trusted proxies are addresses, networks and loopback', () => {
    assert.deepEqual(loadConfig({}).trustedProxies, [])
    const given = 'loopback, 10.0.0.0/8,192.0.2.1 ,2001:db8::/32'
    assert.deepEqual(loadConfig({ INTRAY_TRUSTED_PROXIES: given }).trustedProxies, [
      'loopback',
      '10.0.0.0/8',
      '192.0.2.1',
      '2001:db8::/32',
    ])
    for (const bad of [
      'localhost',
      '10.0.0.0/33',
      '10.0.0.0/',
      '10.0.0',
      '::/129',
      '10.0.0.0/8/8',
      'loopback,',
      'fe80::1%eth0',
    ]) {
      assert.match(problemsOf({ INTRAY_TRUSTED_PROXIES: bad })[0]!, /is not an address, a network/, bad)
    }
  })

  test('the headers timeout is not longer than that of the request', () => {
    assert.match(problemsOf({ INTRAY_HEADERS_TIMEOUT: '31s' })[0]!, /INTRAY_HEADERS_TIMEOUT.*INTRAY_REQUEST_TIMEOUT/)
    assert.deepEqual(problemsOf({ INTRAY_HEADERS_TIMEOUT: '31s', INTRAY_REQUEST_TIMEOUT: '31s' }), [])
  })
})

describe('secrets', () => {
  test('the key of sealed secrets is never shown, and a wrong one is not repeated', () => {
    const key = Buffer.alloc(32, 7).toString('base64')
    const config = loadConfig({ INTRAY_SECRETS_KEY: key })
    assert.deepEqual(config.secretsKey, Buffer.alloc(32, 7))
    assert.match(printConfig(config), /^INTRAY_SECRETS_KEY=\[redacted\]$/m)
    assert.match(printConfig(loadConfig({})), /^INTRAY_SECRETS_KEY=$/m)
    assert.deepEqual(loadConfig({ INTRAY_SECRETS_KEY_FILE: secretFile(`${key}\n`) }).secretsKey, Buffer.alloc(32, 7))
    const [problem = ''] = problemsOf({ INTRAY_SECRETS_KEY: 'HUNTER2' })
    assert.match(problem, /^INTRAY_SECRETS_KEY must be 32 bytes/)
    assert.doesNotMatch(problem, /HUNTER2/)
  })

  test('may be read from a file', () => {
    const file = secretFile('sqlite:./from-a-file.db\n')
    assert.equal(loadConfig({ INTRAY_DATABASE_URL_FILE: file }).databaseUrl, 'sqlite:./from-a-file.db')
  })

  test('may not be given twice', () => {
    const file = secretFile('sqlite:./a.db')
    const problems = problemsOf({ INTRAY_DATABASE_URL: 'sqlite:./b.db', INTRAY_DATABASE_URL_FILE: file })
    assert.deepEqual(problems, [
      'INTRAY_DATABASE_URL is set twice, directly and as INTRAY_DATABASE_URL_FILE; remove one.',
    ])
  })

  test('in a file that cannot be read are a problem', () => {
    const problems = problemsOf({ INTRAY_DATABASE_URL_FILE: '/nowhere/at/all' })
    assert.equal(problems.length, 1)
    assert.match(problems[0]!, /INTRAY_DATABASE_URL_FILE/)
  })

  test('alone have a file: other settings do not', () => {
    assert.match(problemsOf({ INTRAY_PORT_FILE: '/x' })[0]!, /^INTRAY_PORT_FILE is not a setting/)
  })

  test('as a flag win over the file', () => {
    const file = secretFile('sqlite:./a.db')
    assert.equal(
      loadConfig({ INTRAY_DATABASE_URL_FILE: file }, { databaseUrl: 'sqlite:./b.db' }).databaseUrl,
      'sqlite:./b.db',
    )
  })
})

describe('what --print-config shows', () => {
  test('is one line for each setting, in the form it can be given', () => {
    const config = loadConfig({ INTRAY_STOP_TIMEOUT: '90s', INTRAY_INTAKE_SCOPES: 'cf,bot' })
    const lines = printConfig(config).split('\n')
    assert.equal(lines.length, SETTING_NAMES.length)
    assert.ok(lines.includes('INTRAY_STOP_TIMEOUT=90s'))
    assert.ok(lines.includes('INTRAY_INTAKE_SCOPES=cf,bot'))
    const again = Object.fromEntries(
      lines.map((line) => [line.slice(0, line.indexOf('=')), line.slice(line.indexOf('=') + 1)]),
    )
    assert.deepEqual(loadConfig(again), config)
  })

  test('holds no password', () => {
    const passwords: Record<string, string> = {
      'postgres://user:HUNTER2@host:5432/db': 'postgres://user:[redacted]@host:5432/db',
      'postgres://:HUNTER2@host/db': 'postgres://:[redacted]@host/db',
      'postgres://user:HUN/TER:2@host/db': 'postgres://user:[redacted]@host/db',
      'postgres://user@host/db': 'postgres://user@host/db',
      'sqlite:./data/intray.db': 'sqlite:./data/intray.db',
    }
    for (const [url, shown] of Object.entries(passwords)) {
      const printed = printConfig(loadConfig({ INTRAY_DATABASE_URL: url }))
      assert.ok(printed.split('\n').includes(`INTRAY_DATABASE_URL=${shown}`), printed)
    }
  })

  test('holds no part of a password that has an @ in it', () => {
    assert.doesNotMatch(
      printConfig(loadConfig({ INTRAY_DATABASE_URL: 'postgres://user:HUN@TER2@host/db' })),
      /HUN|TER2/,
    )
  })

  test('a default is written as it would be given', () => {
    assert.equal(defaultText('stopTimeout'), '25s')
    assert.equal(defaultText('intakeScopes'), '')
    assert.equal(defaultText('maxBodyBytes'), '1048576')
  })
})
