// `prove wordpress --cf7 <folder>`: a visitor submits a form of the real Contact Form 7 in Chromium, with checkboxes and an
// upload, on php-fpm and on PHP's own server, while Intray hangs and while the mailer throws. A cycle is one submission of each.
// Claim: the visitor is answered in under a second, and every submission arrives once, with all its fields.
// Control: a form that sends from CF7's `wpcf7_mail_sent`, as webhook plugins do, must be found to lose submissions.

import { existsSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { chromium, type Page } from 'playwright-core'
import { findChromium } from '../../test/support/chromium.ts'
import { Gate } from '../../test/support/gate.ts'
import { createToken, readJournal, withStore } from '../../test/support/journal.ts'
import { until } from '../../test/support/until.ts'
import { hasWordpress, installSite, type Site, WORDPRESS_PACKAGES } from '../../test/support/wordpress/site.ts'
import { NO_COUNTS } from '../counts.ts'
import { requirePackages } from '../debian.ts'
import { type Proof, type ProofContext, Unable } from '../proof.ts'
import { Service } from '../service.ts'

const MAX_ANSWER_MS = 1000

/** What the mailer does, by flags in the site's folder, and the control. */
const MAILER = `<?php
add_filter('pre_wp_mail', static function () {
    if (file_exists(ABSPATH . 'mailer-throws')) {
        throw new RuntimeException('The mailer is broken.');
    }
    return true;
});
add_filter('intray_cf7_message', static function ($message) {
    return strpos($message['message']['text'], 'control') === 0 ? null : $message;
});
add_action('wpcf7_mail_sent', static function () {
    $data = WPCF7_Submission::get_instance()->get_posted_data();
    if (strpos($data['your-message'], 'control') === 0) {
        wp_remote_post(Intray\\WordPress\\Settings::url() . '/v1/inbox/events', [
            'headers' => ['Content-Type' => 'application/json',
                'Authorization' => 'Bearer ' . Intray\\WordPress\\Settings::token()],
            'body' => wp_json_encode(['message' => ['text' => $data['your-message']]]),
        ]);
    }
});`

const FORM = `[text* your-name][email* your-email][checkbox interests "Bread" "Cake" "Tea"]
[file upload filetypes:txt limit:1mb][textarea your-message][submit "Send"]`

const CREATE = `
$make = static function (string $settings): int {
    $form = WPCF7_ContactForm::get_template();
    $form->set_properties(['form' => getenv('FORM'), 'additional_settings' => $settings]);
    $id = $form->save();
    return wp_insert_post(['post_type' => 'page', 'post_status' => 'publish', 'post_title' => 'Contact',
        'post_content' => "[contact-form-7 id=\\"$id\\"]"]);
};
echo json_encode([$make(''), $make('do_not_store: true')]);`

interface Payload {
  readonly channel_ref?: string
  readonly contact?: object
  readonly fields?: object
  readonly files?: object
  readonly message: { readonly text: string }
}

export const wordpress: Proof = {
  name: 'wordpress',
  about: 'a form of Contact Form 7 is submitted while Intray hangs, is down, or the mailer throws',
  needs: 'Debian’s WordPress, Chromium, a copy of Contact Form 7',
  stores: ['sqlite'],
  defaultCycles: 3,
  options: { cf7: 'folder of Contact Form 7; 5.7 fits Debian’s WordPress' },
  async run(context) {
    const { site, gate, databaseUrl, page, pages } = await setUp(context)
    const servers = { 'php-fpm': await site.serveFpm(), 'php -S': await site.serveBuiltIn() }
    const flag = join(site.folder, 'mailer-throws')
    const broken: string[] = []
    const notes: string[] = []
    const expected: string[] = []
    const lost: string[] = []
    let throws = 0

    for (const [server, url] of Object.entries(servers)) {
      for (const fault of ['hanging', 'down', 'mailer throws'] as const) {
        const answered: number[] = []
        if (fault === 'mailer throws') writeFileSync(flag, '')
        for (let cycle = 0; cycle < context.cycles; cycle += 1) {
          const text = `${server}, ${fault}, ${cycle}`
          gate.set(fault === 'down' ? 'down' : 'hanging')
          const wanted = fault === 'mailer throws' ? 'error' : 'sent'
          expected.push(text)
          answered.push(await submit(page, `${url}/?page_id=${pages.usual}`, text, wanted))
          if (fault === 'mailer throws') throws += 1
          // Each visitor meets a site that does not know yet that Intray hangs.
          await settle(site, gate)
        }
        rmSync(flag, { force: true })
        const longest = Math.max(...answered)
        notes.push(`${server}, ${fault}: answered after ${answered.map(Math.round).join(', ')} ms.`)
        if (context.isTimed && longest >= MAX_ANSWER_MS)
          broken.push(`${server}, ${fault}: answered after ${longest} ms`)
      }
      await submit(page, `${url}/?page_id=${pages.notStored}`, `${server}, not to be stored`, 'sent')
    }

    const control = `control`
    writeFileSync(flag, '')
    await submit(page, `${servers['php -S']}/?page_id=${pages.usual}`, `${control}: mailer throws`, 'error')
    rmSync(flag)
    gate.set('hanging')
    const slow = await submit(page, `${servers['php -S']}/?page_id=${pages.usual}`, `${control}: hanging`, 'sent')
    await settle(site, gate)

    const stored = (await readJournal(databaseUrl)).map(
      ({ payload }) => JSON.parse(Buffer.from(payload!).toString()) as Payload,
    )
    const texts = stored.map(({ message }) => message.text)
    lost.push(...expected.filter((text) => !texts.includes(text)))
    const controlLost = ['mailer throws', 'hanging'].filter((fault) => !texts.includes(`${control}: ${fault}`))
    for (const payload of stored) {
      const { channel_ref, contact, fields, files, message } = payload
      const said = JSON.stringify([channel_ref, contact, fields, files])
      if (said !== wholeForm(message.text)) broken.push(`${message.text}: arrived as ${said}`)
    }
    const { down, hanging } = gate.faults
    return {
      counts: {
        ...NO_COUNTS,
        sent: expected.length,
        acknowledged: expected.length,
        faults: down + hanging + throws,
        lost: lost.length,
        twice: texts.filter((text, i) => texts.indexOf(text) !== i).length,
        resurrected: texts.filter((text) => !expected.includes(text)).length,
      },
      notes: [...notes, `${hanging} requests hung, ${down} were cut off, the mailer threw ${throws} times.`],
      broken,
      controls: [
        {
          about: 'a form that sends from wpcf7_mail_sent',
          failed: controlLost.length === 2,
          detail: `lost ${controlLost.length} of 2; while Intray hung its visitor waited ${Math.round(slow)} ms`,
        },
      ],
    }
  },
}

async function setUp(context: ProofContext) {
  requirePackages({ proof: 'wordpress', packages: WORDPRESS_PACKAGES, isThere: hasWordpress }, context.progress)
  const program = findChromium()
  if (program === null) throw new Unable('wordpress needs Chromium: apt-get install chromium-headless-shell')
  const { cf7 = '' } = context.given
  if (!existsSync(join(cf7, 'wp-contact-form-7.php')))
    throw new Unable('wordpress needs --cf7 with a folder of Contact Form 7 (5.7 fits Debian’s WordPress)')
  const databaseUrl = await context.newDatabase()
  const token = await withStore(databaseUrl, (store) => createToken(store))
  const service = new Service(context, { databaseUrl })
  await service.start()
  const gate = await Gate.open(service.port)
  context.onCleanup(() => gate.close())
  context.progress('installing WordPress and Contact Form 7')
  const config = `define('INTRAY_URL', '${gate.url}'); define('INTRAY_TOKEN', '${token}');`
  const site = await installSite({ cf7, config })
  context.onCleanup(() => site.stop())
  writeFileSync(join(site.folder, 'wp-content/mu-plugins/mailer.php'), MAILER)
  const [usual, notStored] = JSON.parse(await site.print(CREATE, { FORM })) as [number, number]
  const browser = await chromium.launch({ executablePath: program, args: ['--no-sandbox'] })
  context.onCleanup(() => browser.close())
  return { site, gate, databaseUrl, page: await browser.newPage(), pages: { usual, notStored } }
}

/** Fills in the form and sends it; returns after how many milliseconds the visitor saw what became of it. */
async function submit(page: Page, url: string, text: string, wanted: 'sent' | 'error'): Promise<number> {
  await page.goto(url)
  await page.fill('[name=your-name]', 'Ada Lovelace')
  await page.fill('[name=your-email]', 'Ada@example.org')
  await page.check('[value=Bread]')
  await page.check('[value=Tea]')
  await page.setInputFiles('[name=upload]', { name: 'menu.txt', mimeType: 'text/plain', buffer: Buffer.from('soup') })
  await page.fill('[name=your-message]', text)
  const startedAt = performance.now()
  const answered = page.waitForResponse((response) => response.request().method() === 'POST')
  await page.click('[type=submit]')
  const status = (await answered).status()
  if ((status === 500) !== (wanted === 'error')) throw new Error(`${text}: the form was answered with ${status}`)
  // The script of the form shows nothing after an error.
  if (wanted === 'sent') await page.waitForSelector('form.wpcf7-form[data-status="sent"]')
  return performance.now() - startedAt
}

/** Intray is back, and cron sends what waits. */
async function settle(site: Site, gate: Gate): Promise<void> {
  gate.set('open')
  await until('everything is sent', async () => {
    await site.print('Intray\\WordPress\\Sender::retry_now(); Intray\\WordPress\\Sender::flush();')
    return (await site.print('echo Intray\\WordPress\\Sender::outbox()->state()["waiting"];')) === '0'
  })
}

function wholeForm(text: string): string {
  return JSON.stringify([
    'ada@example.org',
    { name: 'Ada Lovelace', email: 'Ada@example.org' },
    { 'your-name': 'Ada Lovelace', 'your-email': 'Ada@example.org', interests: ['Bread', 'Tea'], 'your-message': text },
    { upload: ['menu.txt'] },
  ])
}
