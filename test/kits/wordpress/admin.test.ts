// What the plugin shows and lets do in the admin area of a real WordPress site: settings, the check, the list, the notices,
// and what stays when it is deleted.

import assert from 'node:assert/strict'
import { join } from 'node:path'
import { after, before, describe, test, type TestContext } from 'node:test'
import { createToken, readJournal, withStore } from '../../support/journal.ts'
import { startServer } from '../../support/process.ts'
import { tempFolder } from '../../support/temp.ts'
import { ADMIN, installSite, missingWordpress, type Site } from '../../support/wordpress/site.ts'

const PAGE = '/wp-admin/options-general.php?page=intray'
const STATE = 'echo json_encode(Intray\\WordPress\\Sender::outbox()->state());'
const TABLE = '{$wpdb->prefix}intray_outbox'
const SMALL_BODIES = '1024'

describe('the plugin in the admin area of WordPress', { skip: missingWordpress() }, () => {
  const databaseUrl = `sqlite:${join(tempFolder('intray'), 'intray.db')}`
  const cleanUps: (() => unknown)[] = []
  const context = { after: (cleanUp: () => unknown) => cleanUps.push(cleanUp) } as unknown as TestContext
  let token: string
  let strict: string
  let lenient: string
  let site: Site
  let admin: Visitor

  before(async () => {
    token = await withStore(databaseUrl, (store) => createToken(store))
    site = await installSite()
    site.disableCron(true)
    const url = await site.serveBuiltIn()
    admin = await Visitor.signIn(url, ADMIN.name, ADMIN.password)
  })
  after(async () => {
    await site?.stop()
    for (const cleanUp of cleanUps) await cleanUp()
  })

  /** Fills in the form of the settings as a browser would. */
  const saveSettings = async (values: Record<string, string>) => {
    const fields = formOf(await admin.get(PAGE), 'action="options.php"')
    return admin.post('/wp-admin/options.php', { ...fields, ...values })
  }
  const press = async (button: string) => {
    const fields = formOf(await admin.get(PAGE), `class="intray-${button}"`)
    return admin.post('/wp-admin/admin-post.php', fields)
  }
  const keep = (message: object) =>
    site.print(`Intray\\WordPress\\Sender::outbox()->add(json_decode(getenv('MESSAGE'), true));`, {
      MESSAGE: JSON.stringify(message),
    })
  const stored = async () => (await readJournal(databaseUrl)).map(({ event }) => event.sourceRef)

  test('takes the address and the token, and never shows the token again', async () => {
    const service = await startServer(context, {
      INTRAY_DATABASE_URL: databaseUrl,
      INTRAY_MAX_BODY_BYTES: SMALL_BODIES,
    })
    strict = service.url
    assert.match(await admin.get(PAGE), /No token is stored/)
    const saved = await saveSettings({ intray_url: `${strict}/`, intray_token: token })
    assert.match(saved, /A token is stored/)
    const pages = [saved, await admin.get(PAGE), await admin.get('/wp-admin/options.php')]
    for (const page of pages) assert.equal(page.includes(token), false)
    assert.equal(await site.print('echo Intray\\WordPress\\Settings::url();'), strict)

    await saveSettings({ intray_url: strict, intray_token: '' })
    assert.equal(await site.print('echo Intray\\WordPress\\Settings::token();'), token)
    const constant = `define('INTRAY_TOKEN', 'itr_constant'); echo Intray\\WordPress\\Settings::token();`
    assert.equal(await site.print(constant), 'itr_constant')
  })

  test('checks the connection', async () => {
    assert.match(await press('check'), /notice-success"><p>Intray answers, and the token is valid \(scope cf\)\./)
    await saveSettings({ intray_url: strict, intray_token: 'itr_nonsense' })
    assert.match(await press('check'), /notice-error"><p>HTTP 401: This token is not known here/)
    await saveSettings({ intray_url: strict, intray_token: token })
  })

  test('lists what waits and what was refused, escaped, and sends it again with the same bytes', async () => {
    await keep({ source_ref: '<b>large</b>', message: { type: 'text', text: 'x'.repeat(2000) } })
    assert.match(await admin.get(PAGE), /Waiting: 1\. Refused: 0\./)
    const refused = await press('flush')
    assert.match(refused, /Sent: 0\. Refused: 1\. HTTP 413: /)
    assert.match(refused, /Waiting: 0\. Refused: 1\./)
    assert.match(refused, /<code>&lt;b&gt;large&lt;\/b&gt;<\/code>/)
    assert.match(refused, /Intray refused 1 message\./)
    assert.equal(refused.includes('<b>large'), false)
    assert.deepEqual(await stored(), [])

    const service = await startServer(context, { INTRAY_DATABASE_URL: databaseUrl.replace('intray.db', 'second.db') })
    lenient = service.url
    const second = databaseUrl.replace('intray.db', 'second.db')
    const secondToken = await withStore(second, (store) => createToken(store))
    await saveSettings({ intray_url: lenient, intray_token: secondToken })
    assert.match(await press('resend'), /Sent: 1\. Refused: 0\./)
    const [row] = await readJournal(second)
    assert.equal(row!.event.sourceRef, '<b>large</b>')
    assert.equal((JSON.parse(Buffer.from(row!.payload!).toString()) as Message).message.text.length, 2000)
  })

  test('does nothing without its nonce, and nothing for those who may not', async () => {
    await keep({ source_ref: 'kept' })
    const page = await admin.post('/wp-admin/admin-post.php', { action: 'intray_flush', _wpnonce: 'wrong' }, 403)
    assert.match(page, /expired/)
    assert.match(await site.print(STATE), /"waiting":1/)
    await site.print(`wp_create_user('reader', 'a password', 'reader@example.org');`)
    const reader = await Visitor.signIn(admin.url, 'reader', 'a password')
    await reader.get(PAGE, 403)
    // A nonce of their own does not help them.
    const nonce = `$u = get_user_by('login', 'reader'); wp_set_current_user($u->ID);
      $_COOKIE[LOGGED_IN_COOKIE] = getenv('COOKIE'); echo wp_create_nonce('intray_flush');`
    const cookie = reader.cookie(/^wordpress_logged_in_/)
    const fields = { action: 'intray_flush', _wpnonce: await site.print(nonce, { COOKIE: cookie }) }
    assert.match(await reader.post('/wp-admin/admin-post.php', fields, 403), /You may not do this\./)
    assert.match(await site.print(STATE), /"waiting":1/)
  })

  test('tells administrators and Site Health when a message is older than 15 minutes', async () => {
    const health = async () =>
      JSON.parse(await site.print('echo json_encode(Intray\\WordPress\\Health::test());')) as { status: string }
    assert.equal((await admin.get('/wp-admin/index.php')).includes('intray-problem'), false)
    assert.equal((await health()).status, 'good')
    await site.print(`$wpdb->query("UPDATE ${TABLE} SET created_at = created_at - 16 * 60000");`)
    const { oldest_at: oldestAt } = JSON.parse(await site.print(STATE)) as { oldest_at: number }
    const page = await admin.get('/wp-admin/index.php')
    // Rounded, and counted from when an earlier test kept it.
    const age = Number(/intray-problem"><p>1 message waits to be sent to Intray, for (\d+) mins?\./.exec(page)?.[1])
    assert.ok(age >= 16 && age <= (Date.now() + 1000 - oldestAt) / 60_000 + 0.5, page.slice(0, 1000))
    assert.equal((await health()).status, 'critical')
    assert.match(await admin.get('/wp-admin/site-health.php'), /"test":"intray"|Form messages do not reach Intray/)
  })

  test('keeps a message whose references cannot be used, and one whose table is gone', async () => {
    const before = JSON.parse(await site.print(STATE)) as { waiting: number }
    await site.print(
      `do_action('intray_send', ['source_ref' => str_repeat('a', 600), 'channel_ref' => ['x'], 'n' => 1]);`,
    )
    assert.equal((JSON.parse(await site.print(STATE)) as { waiting: number }).waiting, before.waiting + 1)
    assert.match(await press('flush'), /Sent: 2\. Refused: 0\./)
    await site.print(`$wpdb->query("DROP TABLE ${TABLE}"); do_action('intray_send', ['n' => 2]);`)
    assert.match(await press('flush'), /Sent: 1\. Refused: 0\./)
  })

  test('asks before unsent messages go, and deletes them only if told to', async () => {
    const remove = `require_once ABSPATH . 'wp-admin/includes/plugin.php'; deactivate_plugins('intray/intray.php');
      echo (int) wp_next_scheduled('intray_flush'); uninstall_plugin('intray/intray.php');`
    const activate = `require_once ABSPATH . 'wp-admin/includes/plugin.php'; activate_plugin('intray/intray.php');`
    const left = `echo json_encode($wpdb->get_col("SELECT source_ref FROM ${TABLE}"));`
    await keep({ source_ref: 'unsent' })
    assert.match(await admin.get('/wp-admin/plugins.php'), /1 unsent message stays in the database/)
    assert.equal(await site.print(remove), '0')
    assert.equal(await site.print(left), '["unsent"]')
    assert.equal(await site.print(`echo json_encode(get_option('intray_token'));`), 'false')

    await site.print(activate)
    await saveSettings({ intray_url: lenient, intray_token: token, intray_delete_unsent: '1' })
    assert.match(await admin.get('/wp-admin/plugins.php'), /1 unsent message is deleted too/)
    await site.print(remove)
    assert.equal(await site.print(`echo json_encode($wpdb->get_col("SHOW TABLES LIKE '%intray%'"));`), '[]')
  })
})

interface Message {
  readonly message: { readonly text: string }
}

/** A browser without scripts: keeps cookies, follows redirects. */
class Visitor {
  readonly url: string
  readonly #cookies = new Map<string, string>()

  private constructor(url: string) {
    this.url = url
  }

  static async signIn(url: string, name: string, password: string): Promise<Visitor> {
    const visitor = new Visitor(url)
    await visitor.get('/wp-login.php')
    await visitor.post('/wp-login.php', { log: name, pwd: password, testcookie: '1' })
    return visitor
  }

  cookie(name: RegExp): string {
    const found = Array.from(this.#cookies).find(([one]) => name.test(one))
    return decodeURIComponent(found![1])
  }

  get(path: string, status = 200): Promise<string> {
    return this.#ask(path, { method: 'GET' }, status)
  }

  post(path: string, fields: Record<string, string>, status = 200): Promise<string> {
    return this.#ask(path, { method: 'POST', body: new URLSearchParams(fields) }, status)
  }

  async #ask(path: string, init: RequestInit, status: number): Promise<string> {
    const Cookie = Array.from(this.#cookies, ([name, value]) => `${name}=${value}`).join('; ')
    const answer = await fetch(new URL(path, this.url), { ...init, redirect: 'manual', headers: { Cookie } })
    for (const line of answer.headers.getSetCookie()) {
      const [, name, value] = /^([^=]+)=([^;]*)/.exec(line)!
      this.#cookies.set(name!, value!)
    }
    const text = await answer.text()
    const next = answer.headers.get('location')
    if (next !== null) return this.#ask(next, { method: 'GET' }, status)
    assert.equal(answer.status, status, text.slice(0, 1000))
    // What the page itself has, without the menus of WordPress.
    return text.slice(Math.max(0, text.indexOf('id="wpbody-content"')))
  }
}

/** The hidden fields of the form whose tag has this in it. */
function formOf(page: string, mark: string): Record<string, string> {
  const form = page.split('<form').find((part) => part.split('>')[0]!.includes(mark))
  assert.ok(form, `no form with ${mark}`)
  const inputs = form
    .split('</form>')[0]!
    .matchAll(/<input type=["']hidden["'][^>]*?name=["']([^"']+)["'] value=["']([^"']*)["']/g)
  return Object.fromEntries(Array.from(inputs, ([, name, value]) => [name!, value!]))
}
