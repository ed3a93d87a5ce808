// `./intray operator`: who may sign in to the console, whether the server runs or not. Whoever may run this on the machine
// may let anybody in; each call is in the audit log.

import { createInterface } from 'node:readline'
import { Writable } from 'node:stream'
import { parseArgs } from 'node:util'
import { createAudit } from '../../auth/audit.ts'
import { hashPassword, PASSWORD_LENGTH } from '../../auth/password.ts'
import { createSignInLink } from '../../auth/sessions.ts'
import { loadConfig } from '../../config.ts'
import {
  type AuditAction,
  COMMAND_LINE,
  isOperatorName,
  MAX_OPERATOR_TENANTS,
  OPERATOR_ROLES,
  type OperatorRecord,
  type OperatorRole,
} from '../../model/operator.ts'
import { parseTenant, type Tenant, tenantText } from '../../model/principal.ts'
import { isoTime, systemClock } from '../../runtime/clock.ts'
import { randomBase62 } from '../../runtime/id.ts'
import type { Store } from '../../store/contract/store.ts'
import { type Command, CommandError, UsageError } from '../command.ts'
import { withStore } from '../open.ts'
import { note, print, printJson, printList, record } from '../output.ts'
import { linkUrl } from '../starter.ts'

const HELP = `
Usage: ./intray operator add NAME [--role viewer|admin] [--tenant ACCOUNT/COMPANY]...
       ./intray operator list
       ./intray operator link NAME
       ./intray operator passwd NAME
       ./intray operator disable NAME
       ./intray operator enable NAME

Operators sign in to the console at /console. A new one gets a link that signs in once, within 15 minutes.

  --role    viewer looks (the default); admin also changes things.
  --tenant  Limits the operator to this tenant, e.g. 1/1; give it again for more. Without it: all tenants.
  --json    Print JSON, one object a line.

passwd asks for a password of ${PASSWORD_LENGTH.min} characters or more; where there is no terminal it is the first line of
stdin. passwd and disable end every session of the operator, in force within a second.`

interface Values {
  readonly role?: string
  readonly tenant?: readonly string[]
  readonly json?: boolean
}

type Action = (store: Store, name: string, values: Values) => Promise<void>

const ACTIONS: Record<string, Action> = {
  add,
  list: (store, _name, values) => list(store, values),
  link: async (store, name, values) => {
    const operator = known(await store.operators.findByName(name), name)
    if (operator.disabledAt !== null)
      throw new CommandError(`${name} is disabled. First: ./intray operator enable ${name}`)
    await noteDeed(store, 'operator_link', name)
    await showLink(store, operator, values)
  },
  passwd: async (store, name, values) => {
    known(await store.operators.findByName(name), name)
    const password = await readPassword(name)
    show(known(await store.operators.setPassword(name, await hashPassword(password)), name), values)
    await noteDeed(store, 'operator_passwd', name)
  },
  disable: (store, name, values) => setDisabled(store, name, systemClock.now(), values),
  enable: (store, name, values) => setDisabled(store, name, null, values),
}

export const operator: Command = {
  name: 'operator',
  summary: 'Make, list, disable and enable operators of the console.',
  help: HELP,
  async run(args) {
    const { values, positionals } = parseArgs({
      args: [...args],
      allowPositionals: true,
      options: {
        role: { type: 'string' },
        tenant: { type: 'string', multiple: true },
        json: { type: 'boolean' },
      },
    })
    const [action = '', name, ...rest] = positionals
    const run = Object.hasOwn(ACTIONS, action) ? ACTIONS[action] : undefined
    if (!run) throw new UsageError(`operator takes one of: ${Object.keys(ACTIONS).join(', ')}.`)
    const needsName = action !== 'list'
    if (needsName === (name === undefined) || rest.length > 0) {
      throw new UsageError(needsName ? `operator ${action} takes one NAME.` : 'operator list takes no NAME.')
    }
    if (action !== 'add' && (values.role ?? values.tenant) !== undefined) {
      throw new UsageError('--role and --tenant are for operator add.')
    }
    await withStore((store) => run(store, name ?? '', values))
    return 0
  },
}

async function add(store: Store, name: string, values: Values): Promise<void> {
  if (!isOperatorName(name)) {
    throw new UsageError('NAME takes 1 to 64 of a-z, 0-9, "_", ".", "@" and "-", starting with a letter or digit.')
  }
  const role = (values.role ?? 'viewer') as OperatorRole
  if (!OPERATOR_ROLES.includes(role)) throw new UsageError(`--role takes one of: ${OPERATOR_ROLES.join(', ')}.`)
  const tenants = values.tenant?.map(tenantIn) ?? null
  if (tenants && tenants.length > MAX_OPERATOR_TENANTS) {
    throw new UsageError(`An operator takes at most ${MAX_OPERATOR_TENANTS} tenants.`)
  }
  if (await store.operators.findByName(name)) {
    throw new CommandError(`There is an operator ${name} already. A new link for them: ./intray operator link ${name}`)
  }
  const made = { id: randomBase62(10), name, role, tenants, password: null, createdAt: systemClock.now() }
  await store.operators.create(made)
  await noteDeed(store, 'operator_add', name)
  await showLink(store, { ...made, disabledAt: null }, values)
}

async function list(store: Store, values: Values): Promise<void> {
  printList(await store.operators.list(), values.json === true, {
    jsonOf,
    empty: 'No operators yet. Make one: ./intray operator add NAME --role admin',
    columns: {
      NAME: ({ name }) => name,
      ROLE: ({ role }) => role,
      STATE: ({ disabledAt }) => (disabledAt === null ? 'active' : 'disabled'),
      'SIGNS IN BY': ({ password }) => (password === null ? 'link' : 'password'),
      TENANTS: ({ tenants }) => tenants?.map(tenantText).join(' ') ?? 'all',
    },
  })
}

async function setDisabled(store: Store, name: string, disabledAt: number | null, values: Values): Promise<void> {
  show(known(await store.operators.setDisabled(name, disabledAt), name), values)
  await noteDeed(store, disabledAt === null ? 'operator_enable' : 'operator_disable', name)
}

async function showLink(store: Store, one: OperatorRecord, values: Values): Promise<void> {
  const { host, port } = loadConfig(process.env)
  const name = host.includes(':') ? `[${host}]` : host
  const url = linkUrl(`http://${name}:${port}`, await createSignInLink(store.operators, one, systemClock.now()))
  if (values.json) {
    printJson({ ...jsonOf(one), link: url })
    return
  }
  print(record(jsonOf(one)))
  print(
    `\nA link that signs ${one.name} in once, within 15 minutes (put the name of your server in front):\n\n  ${url}\n`,
  )
}

function tenantIn(text: string): Tenant {
  const tenant = parseTenant(text)
  if (!tenant) throw new UsageError('--tenant takes ACCOUNT/COMPANY, for example 1/1.')
  return tenant
}

function known(found: OperatorRecord | null, name: string): OperatorRecord {
  if (!found) throw new CommandError(`There is no operator ${name}. './intray operator list' shows those there are.`)
  return found
}

function show(one: OperatorRecord, values: Values): void {
  if (values.json) printJson(jsonOf(one))
  else print(record(jsonOf(one)))
}

function jsonOf(one: OperatorRecord) {
  return {
    name: one.name,
    role: one.role,
    tenants: one.tenants?.map(tenantText).join(' ') ?? 'all',
    signs_in_by: one.password === null ? 'link' : 'password',
    created_at: isoTime(one.createdAt),
    disabled_at: one.disabledAt === null ? null : isoTime(one.disabledAt),
  }
}

async function noteDeed(store: Store, action: AuditAction, target: string): Promise<void> {
  const onTrouble = (doing: string, error: unknown) => note(`intray: could not ${doing}: ${String(error)}`)
  const audit = createAudit({ store: store.operators, clock: systemClock, onTrouble })
  const operator = { id: '', name: COMMAND_LINE }
  await audit({ action, operator, target, origin: { requestId: null, address: null } })
}

/** Not echoed on a terminal, and never an argument: arguments stand in the list of processes and in histories. */
async function readPassword(name: string): Promise<string> {
  const silent = new Writable({ write: (_chunk, _encoding, done) => done() })
  const isTerminal = process.stdin.isTTY === true
  if (isTerminal) process.stderr.write(`New password for ${name}: `)
  const lines = createInterface({ input: process.stdin, output: silent, terminal: isTerminal })
  try {
    const password = await new Promise<string>((resolve) => {
      lines.once('line', resolve)
      lines.once('close', () => resolve(''))
    })
    if (isTerminal) process.stderr.write('\n')
    const { min, max } = PASSWORD_LENGTH
    if (password.length < min || password.length > max) {
      throw new CommandError(`A password has ${min} to ${max} characters. Nothing was changed.`)
    }
    return password
  } finally {
    lines.close()
  }
}
