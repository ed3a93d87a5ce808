// Submissions on a real WordPress site arrive once, whatever breaks: Intray is down, hangs, is killed in the middle of its
// answer; PHP is killed; the token is wrong; WP-Cron is off. The control, a form that sends at once, loses some of them.

import assert from 'node:assert/strict'
import { join } from 'node:path'
import { after, before, describe, test, type TestContext } from 'node:test'
import { Gate } from '../../support/gate.ts'
import { createToken, readJournal, withStore } from '../../support/journal.ts'
import { type ServerProcess, startServer } from '../../support/process.ts'
import { tempFolder } from '../../support/temp.ts'
import { until } from '../../support/until.ts'
import { SENDING, snippet } from '../examples/snippets.ts'
import { installSite, missingWordpress, type Site } from '../../support/wordpress/site.ts'

const RETRY_NOW = 'Intray\\WordPress\\Sender::retry_now();'
const FLUSH = `echo json_encode(Intray\\WordPress\\Sender::flush());`
const COMMAND = `
class WP_CLI { static function success($line) { echo $line; } static function error($line) { fwrite(STDOUT, "Error: $line"); exit(1); } }
require WP_PLUGIN_DIR . '/intray/includes/command.php';
(new Intray\\WordPress\\Command())->flush([], []);`

interface Flushed {
  readonly sent: number
  readonly problem: string | null
}

describe('a WordPress site with the plugin', { skip: missingWordpress() }, () => {
  const databaseUrl = `sqlite:${join(tempFolder('intray'), 'intray.db')}`
  /** The service outlives the test that starts it. */
  const cleanUps: (() => unknown)[] = []
  const context = { after: (cleanUp: () => unknown) => cleanUps.push(cleanUp) } as unknown as TestContext
  const submitted: string[] = []
  let service: ServerProcess
  let token: string
  let gate: Gate
  let site: Site
  let fpm: string
  let builtIn: string

  const startService = async () => {
    service = await startServer(context, { INTRAY_DATABASE_URL: databaseUrl })
  }
  before(async () => {
    token = await withStore(databaseUrl, (store) => createToken(store))
    await startService()
    gate = await Gate.open(service.port)
    site = await installSite()
    fpm = await site.serveFpm()
    builtIn = await site.serveBuiltIn()
    await setOption('intray_url', gate.url)
    await setOption('intray_token', { token })
  })
  after(async () => {
    gate?.close()
    await site?.stop()
    for (const cleanUp of cleanUps) await cleanUp()
  })

  const setOption = (name: string, value: unknown) =>
    site.print(`update_option(getenv('NAME'), json_decode(getenv('VALUE'), true));`, {
      NAME: name,
      VALUE: JSON.stringify(value),
    })
  const post = (url: string, fields: Record<string, string>) =>
    fetch(`${url}/`, { method: 'POST', body: new URLSearchParams(fields) })
  /** A visitor submits the form and reads the answer. */
  const submit = async (url: string, lead: string) => {
    const answer = await post(url, { lead })
    assert.deepEqual([answer.status, await answer.text()], [200, 'Thank you.'])
    submitted.push(lead)
  }
  const stored = async () => (await readJournal(databaseUrl)).map(({ event }) => event.sourceRef)
  const untilStored = (lead: string) => until(`${lead} is stored`, async () => (await stored()).includes(lead))
  const flush = async () => JSON.parse(await site.print(RETRY_NOW + FLUSH)) as Flushed
  const state = async () =>
    JSON.parse(await site.print('echo json_encode(Intray\\WordPress\\Sender::outbox()->state());')) as {
      readonly waiting: number
      readonly refused: number
    }
  /** A request that hung ends without an answer, and its row waits again. */
  const endHanging = async () => {
    gate.set('down')
    await until('no row is claimed', async () => (await site.print(`echo $wpdb->get_var("${CLAIMED}");`)) === '0')
  }
  const drain = () =>
    until('everything is sent', async () => {
      await flush()
      return (await state()).waiting === 0
    })

  test('sends at once, after the answer on php-fpm and through WP-Cron on PHP’s own server', async () => {
    await submit(fpm, 'fpm:1')
    await untilStored('fpm:1')
    await submit(builtIn, 'built-in:1')
    await untilStored('built-in:1')
  })

  test('answers the visitor while Intray hangs, on php-fpm', async () => {
    site.disableCron(true)
    gate.set('hanging')
    await submit(fpm, 'fpm:hanging')
    await gate.untilHanging()
    assert.equal((await stored()).includes('fpm:hanging'), false)
    await endHanging()
  })

  test('keeps every visitor’s message while Intray is down, and lets only cron try', async () => {
    const visitors = ['fpm:down:1', 'fpm:down:2', 'built-in:down']
    for (const lead of visitors) await submit(lead.startsWith('fpm') ? fpm : builtIn, lead)
    const attempts = await site.print(`echo json_encode($wpdb->get_results("${ATTEMPTS}", OBJECT_K));`)
    const rows = JSON.parse(attempts) as Record<string, { readonly attempts: string }>
    assert.deepEqual(
      visitors.map((lead) => rows[lead]!.attempts),
      ['0', '0', '0'],
    )
    assert.match((await flush()).problem!, /^No answer: /)
    gate.set('open')
    await drain()
  })

  test('answers the visitor while Intray hangs, on PHP’s own server', async () => {
    site.disableCron(false)
    gate.set('hanging')
    await submit(builtIn, 'built-in:hanging')
    await gate.untilHanging()
    await submit(builtIn, 'built-in:hanging:2')
    await endHanging()
    gate.set('open')
    await drain()
    // From here on no test needs it, and the event of every minute would send meanwhile.
    site.disableCron(true)
  })

  test('sends again what Intray stored before it was killed in the middle of its answer', async () => {
    gate.set('cutting')
    gate.onCut = () => service.child.kill('SIGKILL')
    await submit(builtIn, 'killed')
    assert.match((await flush()).problem!, /^No answer: /)
    await service.exited
    assert.ok((await stored()).includes('killed'))
    assert.equal((await state()).waiting, 1)
    await startService()
    gate.target = service.port
    gate.set('open')
    assert.equal((await flush()).sent, 1)
  })

  test('keeps a message when PHP is killed right after it was committed', async () => {
    const { status } = await post(fpm, { lead: 'php:killed', die: '1' })
    assert.ok(status >= 500)
    submitted.push('php:killed')
    assert.equal((await state()).waiting, 1)
    assert.equal((await flush()).sent, 1)
  })

  test('takes two flushes at once', async () => {
    for (let n = 0; n < 10; n += 1) await submit(builtIn, `both:${n}`)
    const both = await Promise.all([flush(), flush()])
    assert.equal(both[0].sent + both[1].sent, 10)
  })

  test('waits while the token is wrong, and sends once it is right', async () => {
    await setOption('intray_token', { token: 'itr_wrong' })
    await submit(builtIn, 'token:1')
    await submit(builtIn, 'token:2')
    const { sent, problem } = await flush()
    assert.equal(sent, 0)
    assert.match(problem!, /^HTTP 401: This token is not known here/)
    const { waiting, refused } = await state()
    assert.deepEqual({ waiting, refused }, { waiting: 2, refused: 0 })
    assert.doesNotMatch(await site.print(`echo json_encode($wpdb->get_results("${ALL}"));`), /itr_/)
    await setOption('intray_token', { token })
    assert.equal((JSON.parse(await site.print(FLUSH)) as Flushed).sent, 2)
  })

  test('sends what the console shows beside a new token, with its constants before the stored options', async () => {
    await setOption('intray_token', { token: 'itr_wrong' })
    await site.print(snippet(SENDING.WordPress, gate.url, token) + FLUSH)
    submitted.push('example:wordpress:1')
    assert.equal((await state()).waiting, 0)
    await setOption('intray_token', { token })
  })

  test('leaves sending to the system’s cron where DISABLE_WP_CRON is set', async () => {
    await site.print(`wp_clear_scheduled_hook('intray_flush_now');`)
    await submit(builtIn, 'no-cron:1')
    await submit(builtIn, 'no-cron:2')
    assert.equal(await site.print(`echo (int) wp_next_scheduled('intray_flush_now');`), '0')
    assert.equal((await state()).waiting, 2)
    assert.equal(await site.print(COMMAND), 'Sent 2, refused 0, waiting 0.')
  })

  test('every submission has arrived once, and the control lost one', async () => {
    gate.set('down')
    const control = await post(builtIn, { lead: 'control', control: gate.url, token })
    assert.deepEqual([control.status, await control.text()], [200, 'Thank you.'])
    gate.set('open')
    const refs = await stored()
    assert.deepEqual(refs.toSorted(), submitted.toSorted())
    assert.equal(refs.includes('control'), false)
    for (const fault of ['down', 'hanging', 'cutting'] as const) assert.ok(gate.faults[fault] > 0, fault)
  })
})

const CLAIMED = `SELECT COUNT(*) FROM {$wpdb->prefix}intray_outbox WHERE status = 'waiting' AND claimed_until > 0`
const ATTEMPTS = 'SELECT source_ref, attempts FROM {$wpdb->prefix}intray_outbox'
const ALL = 'SELECT * FROM {$wpdb->prefix}intray_outbox'
