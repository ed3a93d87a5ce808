// The examples of the page at /docs, pasted as a new user would: each in its own language, against a running server.

import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { before, describe, test } from 'node:test'
import { drivers } from '../support/drivers.ts'
import { runToEnd } from '../support/command.ts'
import { sharedApp } from '../support/shared-app.ts'
import { tempFolder } from '../support/temp.ts'

const PROGRAMS = {
  curl: { command: ['sh'], check: ['curl', '--version'] },
  PHP: { command: ['php'], check: ['php', '-r', 'exit(function_exists("curl_init") ? 0 : 1);'] },
  Python: { command: ['python3'], check: ['python3', '--version'] },
} as const

/** The text of an element, as a browser shows it. */
function textOf(html: string): string {
  return html
    .replaceAll('&lt;', '<')
    .replaceAll('&gt;', '>')
    .replaceAll('&quot;', '"')
    .replaceAll('&#39;', "'")
    .replaceAll('&amp;', '&')
}

describe('the examples of /docs', () => {
  const shared = sharedApp(drivers[0]!)
  const folder = tempFolder('docs-examples')
  let page = ''
  before(async () => {
    page = (await shared.app.send({ path: '/docs' })).text
  })

  for (const [n, [language, { command, check }]] of Object.entries(PROGRAMS).entries()) {
    const isMissing = spawnSync(check[0], check.slice(1), { stdio: 'ignore' }).status !== 0
    const skip = isMissing && `not run: this machine has no ${language}${language === 'PHP' ? ' with ext-curl' : ''}`

    const run = async (anchor: string, token: string) => {
      const article = page.slice(page.indexOf(`<h3 id="${anchor}">`)).split('</article>')[0]!
      const [, example] = new RegExp(`<pre class="in-${language}"><code>(.*?)</code>`, 's').exec(article)!
      const file = join(folder, `${anchor}.${language}`)
      writeFileSync(file, textOf(example!))
      const { code, stdout, stderr } = await runToEnd([...command, file], { TOKEN: token, HOME: folder })
      assert.equal(code, 0, stderr)
      return stdout.toString()
    }

    test(`in ${language} check a token, store a message, list events and claim some`, { skip }, async () => {
      // Each its own tenant: the events that one language claimed keep those behind them waiting.
      const tenant = { accountId: 7, companyId: 100 + n }
      const token = await shared.app.createToken(tenant)
      const processor = await shared.app.createToken({ ...tenant, scope: 'processor' })
      const ping = new RegExp(`"ok":true,"account_id":7,"company_id":${100 + n},"scope":"cf"`)
      assert.match(await run('get-api-ping', token), ping)
      assert.match(await run('post-v1-inbox-events', token), /\{"ok":true,"id":\d+/)
      await shared.app.indexed()
      assert.match(await run('get-v1-inbox-events', processor), /\{"ok":true,"events":\[/)
      assert.match(await run('post-v1-inbox-claims', processor), /\{"ok":true,"events":\[/)
      assert.match(await run('post-v1-inbox-subscriptions', processor), /"ok":true/)
      assert.match(await run('delete-v1-inbox-subscriptions-name-', processor), /"ok":true,"name":"crm"/)
    })

    test(`in ${language} an error is shown with its message`, { skip }, async () => {
      assert.match(await run('post-v1-inbox-events', 'itr_nonsense'), /"error":"invalid_token","message":"This token/)
    })
  }
})
