// The outbox of the PHP kit on its three databases: what send() accepted arrives once, whatever breaks. The control, a queue
// in memory, loses what the same faults hit.

import assert from 'node:assert/strict'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { drivers } from '../../support/drivers.ts'
import { Gate } from '../../support/gate.ts'
import { hasMariadb, type Mariadb, startMariadb } from '../../support/mariadb.ts'
import { missingPhp, runPhp } from '../../support/php.ts'
import { newPostgresDatabase } from '../../support/postgres/databases.ts'
import { cleanEnvironment } from '../../support/process.ts'
import { sharedApp } from '../../support/shared-app.ts'
import { tempFolder } from '../../support/temp.ts'
import { ALL_ONCE, arrivals, flush, type Flushed, jsonOf, KIT, sendAndDie, type Settings, stateOf } from './kit.ts'

const MESSAGES = 12

const DATABASES: Record<string, () => Promise<{ outbox: string; user?: string }>> = {
  SQLite: async () => ({ outbox: `sqlite:${join(tempFolder('outbox'), 'outbox.db')}` }),
  MariaDB: async () => {
    mariadb = await startMariadb()
    await mariadb.createDatabase('site')
    return { outbox: `mysql:unix_socket=${mariadb.socket};dbname=site;charset=utf8mb4`, user: mariadb.user }
  },
  PostgreSQL: async () => {
    const { hostname, port, username, pathname } = new URL(await newPostgresDatabase())
    return { outbox: `pgsql:host=${hostname};port=${port};user=${username};dbname=${pathname.slice(1)}` }
  },
}
let mariadb: Mariadb | null = null

const skip = missingPhp() || (!hasMariadb() && 'not run: MariaDB is not installed')

describe('the outbox of the PHP kit', { skip }, () => {
  const shared = sharedApp(drivers[0]!)
  let gate: Gate
  before(async () => {
    gate = await Gate.open(shared.app.port)
  })
  after(async () => {
    gate.close()
    await mariadb?.stop()
  })

  for (const [name, newOutbox] of Object.entries(DATABASES)) {
    test(`on ${name}, each accepted message arrives once, whatever breaks`, async () => {
      const settings: Settings = { url: gate.url, token: shared.app.token, ...(await newOutbox()) }
      const accepted: string[] = []
      const ref = (n: number) => `${name}:${n}`

      gate.set('down')
      for (let n = 0; n < MESSAGES; n += 1) {
        await sendAndDie(settings, { source_ref: ref(n), ...(n % 3 === 0 ? {} : { channel_ref: `${name}${n % 3}` }) })
        accepted.push(ref(n))
      }
      assert.match((await flush(settings)).problem!, /^No answer: /)

      // The sender that dies leaves a claim behind; nobody else takes the row before 120 s are over.
      gate.set('hanging')
      await jsonOf(settings, '$intray->outbox()->retryNow(); return 1;')
      const sender = spawn('php', [KIT, 'flush'], { env: cleanEnvironment(environment(settings)), stdio: 'ignore' })
      await gate.untilHanging()
      sender.kill('SIGKILL')
      assert.deepEqual((await once(sender, 'close'))[1], 'SIGKILL')
      gate.set('open')
      const claimed = await jsonOf<number>(settings, claimedRows)
      assert.equal(claimed, 1)
      await jsonOf(settings, letClaimsExpire)

      gate.set('cutting')
      const cut = await flush(settings)
      assert.deepEqual({ sent: cut.sent, refused: cut.refused }, { sent: 0, refused: 0 })
      gate.set('open')

      const wrongToken = `${settings.token.slice(0, -1)}!`
      const wrong = await jsonOf<Flushed & { waits: number }>({ ...settings, token: wrongToken }, flushAndMeasure)
      assert.match(wrong.problem!, /^HTTP 401: /)
      assert.ok(wrong.waits >= 60_000, `all rows wait for a minute, and the first one for ${wrong.waits} ms`)
      const { waiting, refused } = await stateOf(settings)
      assert.deepEqual({ waiting, refused }, { waiting: MESSAGES, refused: 0 })

      const both = await Promise.all([flush(settings), flush(settings)])
      assert.deepEqual(
        both.map(({ refused, problem }) => ({ refused, problem })),
        [
          { refused: 0, problem: null },
          { refused: 0, problem: null },
        ],
      )
      // One of the two may end while the other has the last row of a conversation in its hands.
      await flush(settings)
      assert.equal((await stateOf(settings)).waiting, 0)
      assert.deepEqual(await arrivals(shared.app.databaseUrl, accepted), ALL_ONCE)
      for (const fault of ['down', 'hanging', 'cutting'] as const) assert.ok(gate.faults[fault] > 0, fault)

      // What stands between may say anything; no database takes all of it.
      const { problem } = await jsonOf<Flushed>(settings, flushToOddAnswers)
      assert.equal(problem, `HTTP 422: ${'é'.repeat(400)}`)
      assert.equal((await stateOf(settings)).refused, 1)
    })
  }

  test('the control, a queue in memory, loses messages to the same faults', async () => {
    gate.set('down')
    const script = `$queue = [json_encode(['source_ref' => 'memory:1'])];
      require getenv('KIT');
      foreach ($queue as $body) {
        (new Intray\\Curl(getenv('URL'), getenv('TOKEN')))->post($body);
      }
      posix_kill(getmypid(), SIGKILL);`
    const { code } = await runPhp(script, { KIT, URL: gate.url, TOKEN: shared.app.token })
    assert.equal(code, null)
    gate.set('open')
    assert.deepEqual((await arrivals(shared.app.databaseUrl, ['memory:1'])).lost, ['memory:1'])
  })
})

const claimedRows = `$pdo = new PDO(getenv('INTRAY_OUTBOX'), getenv('INTRAY_OUTBOX_USER') ?: null);
  return (int) $pdo->query("SELECT COUNT(*) FROM intray_outbox WHERE claimed_until > 0 AND status = 'waiting'")->fetchColumn();`
const flushAndMeasure = `$before = (int) floor(microtime(true) * 1000);
  $intray->outbox()->retryNow();
  $flushed = $intray->flush();
  $pdo = new PDO(getenv('INTRAY_OUTBOX'), getenv('INTRAY_OUTBOX_USER') ?: null);
  $first = $pdo->query("SELECT MIN(next_at) FROM intray_outbox WHERE status = 'waiting'")->fetchColumn();
  return $flushed + ['waits' => $first - $before];`
const flushToOddAnswers = `$intray->send(['source_ref' => 'odd']);
  return $intray->outbox()->flush(new class implements Intray\\Transport {
    public function post(string $body): Intray\\Answer {
      return new Intray\\Answer(422, json_encode(['message' => str_repeat('é', 500) . chr(0)]));
    }
    public function ping(): Intray\\Answer { return $this->post(''); }
  });`
const letClaimsExpire = `$pdo = new PDO(getenv('INTRAY_OUTBOX'), getenv('INTRAY_OUTBOX_USER') ?: null);
  return $pdo->exec('UPDATE intray_outbox SET claimed_until = claimed_until - 120000 WHERE claimed_until > 0');`

function environment({ url, token, outbox, user = '' }: Settings): Record<string, string> {
  return { INTRAY_URL: url, INTRAY_TOKEN: token, INTRAY_OUTBOX: outbox, INTRAY_OUTBOX_USER: user }
}
