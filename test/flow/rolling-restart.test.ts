// Two nodes on one database behind each of three proxies, with the published configurations and no other setting than
// INTRAY_TRUSTED_PROXIES: restarted in turn under load, no request fails.

import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { createToken, withStore } from '../support/journal.ts'
import { auditRows, faultsOf, Ledger, Load, NOTHING_WRONG } from '../support/load.ts'
import { newMigratedDatabase } from '../support/postgres/databases.ts'
import { readRows } from '../support/postgres/rows.ts'
import { type ServerProcess, startServer } from '../support/process.ts'
import { hasProxies, type RunningProxy, startProxies, WITHOUT_PROXIES } from '../support/proxies.ts'
import { until, within } from '../support/until.ts'

const ROUNDS = 5
/** Messages a second through each proxy, on connections that stay and on new ones. */
const KEPT = 24
const NEW = 8
const SENDERS = 4
const MOST_MESSAGES = 20_000

interface Sending {
  readonly proxy: string
  /** One for each sending, which tells their rows apart. */
  readonly account: number
  readonly ledger: Ledger
  readonly load: Load
}

interface Sendings {
  readonly sendings: readonly Sending[]
  /** Until each had so many more answers, or one has failed. */
  more(count: number): Promise<void>
  /** No more messages; resolves when all are answered. */
  end(): Promise<void>
}

async function send(
  t: TestContext,
  databaseUrl: string,
  proxies: readonly RunningProxy[],
  account: number,
): Promise<Sendings> {
  let isEnding = false
  const sendings: Sending[] = []
  await withStore(databaseUrl, async (store) => {
    for (const { name, port } of proxies) {
      for (const keepAlive of [true, false]) {
        const accountId = account + sendings.length
        const token = await createToken(store, { accountId, companyId: 1 })
        const ledger = new Ledger(accountId, 500)
        const pace = { perSecond: keepAlive ? KEPT : NEW, connections: SENDERS, limit: MOST_MESSAGES }
        const load = new Load({ port, token, ledger, keepAlive, ...pace, until: () => isEnding })
        sendings.push({ proxy: name, account: accountId, ledger, load })
      }
    }
  })
  const end = async () => {
    isEnding = true
    await within('all senders to end', Promise.all(sendings.map(({ load }) => load.finished)))
  }
  t.after(end)
  const more = async (count: number) => {
    const wanted = sendings.map(({ ledger }) => ledger.acknowledged.size + count)
    const hasMore = () => sendings.every(({ ledger }, at) => ledger.acknowledged.size >= wanted[at]!)
    await until(`${count} more messages through each proxy`, () => sendings.some(isBroken) || hasMore())
  }
  return { sendings, more, end }
}

const isBroken = ({ ledger: { failed, refused } }: Sending): boolean => failed.length + refused.length > 0

const errorsOf = ({ proxy, ledger: { failed, refused } }: Sending): string[] => [
  ...failed.map(({ error }) => `${proxy}: ${error.code ?? ''} ${error.message.slice(0, 200)}`),
  ...refused.map(({ answer }) => `${proxy}: ${answer.status} ${answer.text.slice(0, 200)}`),
]

/** Each proxy sends messages to the node. */
function isUsed(node: ServerProcess, sendings: readonly Sending[]): boolean {
  const log = node.stderr()
  const used = sendings.filter(({ account }) => log.includes(`"account_id":${account},`)).map(({ proxy }) => proxy)
  return sendings.every(({ proxy }) => used.includes(proxy))
}

test('two nodes behind nginx, HAProxy and Caddy, under load', async (all) => {
  if (!hasProxies()) return all.skip(WITHOUT_PROXIES)
  const databaseUrl = await newMigratedDatabase()
  const env = { INTRAY_DATABASE_URL: databaseUrl, INTRAY_TRUSTED_PROXIES: 'loopback', INTRAY_CONSOLE: 'off' }
  const nodes = await Promise.all([startServer(all, env), startServer(all, env)])
  const ports = [nodes[0].port, nodes[1].port] as const
  const proxies = await startProxies(all, ports)

  await all.test('restarted five times in turn: no request fails, and each message is stored once', async (t) => {
    const { sendings, more, end } = await send(t, databaseUrl, proxies, 1)
    await more(5)
    let restarts = 0
    for (let round = 0; round < ROUNDS; round += 1) {
      for (const at of [0, 1] as const) {
        nodes[at].child.kill('SIGTERM')
        assert.equal(await within('the node to end', nodes[at].exited), 0)
        const node = await startServer(all, { ...env, INTRAY_PORT: String(ports[at]) })
        nodes[at] = node
        await until('each proxy uses the node again', () => sendings.some(isBroken) || isUsed(node, sendings))
        restarts += 1
      }
    }
    await more(5)
    await end()
    assert.equal(restarts, 2 * ROUNDS)
    const counts = sendings.map(({ proxy, ledger }) => `${proxy} ${ledger.acknowledged.size}`)
    t.diagnostic(`${restarts} restarts; acknowledged through ${counts.join(', ')}`)
    assert.deepEqual(sendings.flatMap(errorsOf), [])
    for (const { account, ledger } of sendings) {
      assert.deepEqual(faultsOf(auditRows(await readRows(databaseUrl, account), ledger)), NOTHING_WRONG)
      assert.equal(ledger.acknowledged.size, ledger.sent.size)
    }
  })

  await all.test('control: one that is killed makes requests fail', async (t) => {
    const { sendings, more, end } = await send(t, databaseUrl, proxies, 101)
    await more(5)
    // nginx gives each node every second request: soon all its senders wait for this one.
    nodes[0].child.kill('SIGSTOP')
    const [ofNginx] = sendings
    await until('all senders through nginx wait', () => ofNginx!.load.inFlight === SENDERS)
    nodes[0].child.kill('SIGKILL')
    await until('their requests have failed', () => isBroken(ofNginx!))
    await end()
    t.diagnostic(`1 kill: ${sendings.flatMap(errorsOf).length} requests failed`)
  })
})
