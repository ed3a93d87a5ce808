import assert from 'node:assert/strict'
import { mkdirSync, renameSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { CertificateRenewal } from '../../src/http/wire/certificate-renewal.ts'
import { type Clock, systemClock } from '../../src/runtime/clock.ts'
import { createLogger } from '../../src/runtime/log.ts'
import { installPair, makeCertificates, newPairFiles, noOpenssl, type PairFiles } from '../support/certificates.ts'
import { TestClock } from '../support/clock.ts'
import { tempFolder } from '../support/temp.ts'
import { until } from '../support/until.ts'

const pairs = makeCertificates(3)
const [first, second, third] = pairs as [(typeof pairs)[0], (typeof pairs)[0], (typeof pairs)[0]]

function startRenewal(
  t: TestContext,
  files: PairFiles,
  { compareEveryMs = 3_600_000, clock = systemClock }: { compareEveryMs?: number; clock?: Clock } = {},
) {
  const renewed: string[] = []
  const log: Record<string, unknown>[] = []
  const renewal = new CertificateRenewal({
    files,
    onRenewed: ({ fingerprint }) => renewed.push(fingerprint),
    logger: createLogger('info', (line) => log.push(JSON.parse(line) as Record<string, unknown>)),
    clock,
    compareEveryMs,
  })
  renewal.start()
  t.after(() => renewal.stop())
  return { renewal, renewed, log }
}

test('each renewed pair is passed on once, without a comparison by the clock', { skip: noOpenssl }, async (t) => {
  const files = newPairFiles(first)
  const { renewal, renewed } = startRenewal(t, files)
  for (const pair of [second, third, first]) {
    installPair(files, pair)
    await until('the pair is in use', () => renewal.current.fingerprint === pair.fingerprint)
  }
  assert.deepEqual(renewed, [second.fingerprint, third.fingerprint, first.fingerprint])
  installPair(files, first)
  renewal.compare()
  assert.equal(renewed.length, 3, 'the same pair, written again, is no renewal')
})

test('a pair that does not work is logged once and changes nothing; a later one is used', {
  skip: noOpenssl,
}, async (t) => {
  const files = newPairFiles(first)
  const { renewal, renewed, log } = startRenewal(t, files)
  const refused = () => log.filter(({ msg }) => String(msg).startsWith('the new certificate cannot be used'))
  writeFileSync(files.key, second.key)
  await until('it is refused', () => refused().length > 0)
  for (let n = 0; n < 5; n += 1) renewal.compare()
  assert.equal(refused().length, 1)
  assert.match(String(refused()[0]!.reason), /is the key of another certificate/)
  assert.deepEqual([renewal.current.fingerprint, renewed.length], [first.fingerprint, 0])
  installPair(files, second)
  await until('the whole pair is in use', () => renewal.current.fingerprint === second.fingerprint)
})

test('links to another folder, as certbot and Kubernetes make them, are followed by comparison alone', {
  skip: noOpenssl,
}, async (t) => {
  const folder = tempFolder('links')
  const files = { cert: join(folder, 'live', 'cert.pem'), key: join(folder, 'live', 'key.pem') }
  for (const [name, pair] of [
    ['one', first],
    ['two', second],
  ] as const) {
    mkdirSync(join(folder, name))
    installPair({ cert: join(folder, name, 'cert.pem'), key: join(folder, name, 'key.pem') }, pair)
  }
  symlinkSync('one', join(folder, 'live'))
  const { renewal } = startRenewal(t, files, { compareEveryMs: 20 })
  // The watched folder is `one`, in which nothing happens.
  symlinkSync('two', join(folder, 'live.new'))
  renameSync(join(folder, 'live.new'), join(folder, 'live'))
  await until('the pair behind the link is in use', () => renewal.current.fingerprint === second.fingerprint)
})

test('files that are gone change nothing', { skip: noOpenssl }, async (t) => {
  const files = newPairFiles(first)
  const { renewal, log } = startRenewal(t, files)
  renameSync(files.cert, `${files.cert}.gone`)
  await until('it is refused', () => log.some(({ reason }) => /cannot be read \(ENOENT\)/.test(String(reason))))
  assert.equal(renewal.current.fingerprint, first.fingerprint)
})

test('an expired certificate is used, with a warning', { skip: noOpenssl }, (t) => {
  const warnings = (now: number) => {
    const { log } = startRenewal(t, newPairFiles(first), { clock: new TestClock(now) })
    return log.filter(({ msg }) => msg === 'the certificate has expired: clients refuse it').length
  }
  assert.equal(warnings(Date.now()), 0)
  assert.equal(warnings(Date.now() + 3 * 86_400_000), 1)
})
