// `./intray operator …`: adds, lists, changes and removes the operators of the console, whether a server runs or not. Every change is in
// the audit log.

import { createInterface } from 'node:readline'
import { Writable } from 'node:stream'
import { hashPassword, PASSWORD_LENGTH } from '../../auth/password.ts'
import { createSignInLink } from '../../auth/sessions.ts'
import { loadConfig } from '../../config.ts'
import {
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
import { recordCommand } from '../audit.ts'
import { type Command, command, CommandError, commandGroup, type Flags, UsageError } from '../command.ts'
import { JSON_FLAG, JSON_LINES_FLAG } from '../flags.ts'
import { withStore } from '../open.ts'
import { print, printJson, printList, record } from '../output.ts'
import { configuredAddress, linkUrl } from '../server-address.ts'
import { serverOf } from '../server-notes.ts'

const YES = {
  yes: { about: 'Do it even if no admin is left who can sign in.' },
} as const satisfies Flags

const add = command({
  args: 'NAME',
  about: 'Adds an operator and prints a sign-in link. It signs in once, within 15 minutes.',
  flags: {
    role: { value: 'ROLE', about: 'viewer may read (the default); admin may also change things.' },
    tenant: {
      value: 'ACCOUNT/COMPANY',
      about: 'Limits the operator to this tenant, for example 1/1; repeat it for more. Without it: all tenants.',
      multiple: true,
    },
    ...JSON_FLAG,
  },
  async run(values, [name = '']) {
    if (!isOperatorName(name)) {
      throw new UsageError('NAME takes 1 to 64 of a-z, 0-9, "_", ".", "@" and "-", starting with a letter or digit.')
    }
    const role = roleIn(values.role ?? 'viewer', '--role takes')
    const tenants = values.tenant?.map(tenantIn) ?? null
    if (tenants && tenants.length > MAX_OPERATOR_TENANTS) {
      throw new UsageError(`An operator takes at most ${MAX_OPERATOR_TENANTS} tenants.`)
    }
    await withStore(async (store) => {
      if (await store.operators.findByName(name)) {
        throw new CommandError(`Operator ${name} already exists. For a new link: ./intray operator link ${name}`)
      }
      const made = { id: randomBase62(10), name, role, tenants, password: null, createdAt: systemClock.now() }
      await store.operators.create(made)
      await recordCommand(store, 'operator_add', name)
      await showLink(store, { ...made, disabledAt: null }, values.json)
    })
  },
})

const list = command({
  about: 'Lists all operators. Shows role, state and tenants.',
  flags: JSON_LINES_FLAG,
  async run(values) {
    printList(await withStore((store) => store.operators.list()), values.json === true, {
      jsonOf,
      empty: 'No operators yet. Add one: ./intray operator add NAME --role admin',
      columns: {
        NAME: ({ name }) => name,
        ROLE: ({ role }) => role,
        STATE: ({ disabledAt }) => (disabledAt === null ? 'active' : 'disabled'),
        'SIGNS IN BY': ({ password }) => (password === null ? 'link' : 'password'),
        TENANTS: ({ tenants }) => tenants?.map(tenantText).join(' ') ?? 'all',
      },
    })
  },
})

const link = changeCommand(
  'Prints a new sign-in link. It signs the operator in once, within 15 minutes.',
  async (store, name, isJson) => {
    const operator = known(await store.operators.findByName(name), name)
    if (operator.disabledAt !== null) {
      throw new CommandError(`Operator ${name} is disabled. Enable it first: ./intray operator enable ${name}`)
    }
    await recordCommand(store, 'operator_link', name)
    await showLink(store, operator, isJson)
  },
)

const setPassword = changeCommand(
  `Sets a password. Asks for ${PASSWORD_LENGTH.min} to ${PASSWORD_LENGTH.max} characters; without a terminal the password is the first line of stdin. Ends every
session of the operator within a second.`,
  async (store, name, isJson) => {
    known(await store.operators.findByName(name), name)
    const given = await readPassword(name)
    show(known(await store.operators.setPassword(name, await hashPassword(given)), name), isJson)
    await recordCommand(store, 'operator_password', name)
  },
)

const disable = changeCommand(
  'Disables an operator: it can no longer sign in. Ends every session of the operator within a second.',
  (store, name, isJson) => setDisabled(store, name, systemClock.now(), isJson),
)

const enable = changeCommand(
  'Enables an operator that was disabled. Its old sessions stay ended.',
  (store, name, isJson) => setDisabled(store, name, null, isJson),
)

const changeRole = command({
  args: '[NAME ROLE]',
  about:
    'Changes what an operator may do: viewer reads, admin also changes things. Ends every session of the operator within a second.',
  flags: { ...YES, ...JSON_FLAG },
  async run(values, [name = '', given = '', ...more]) {
    if (given === '' || more.length > 0) throw new UsageError('Give the name and the role: operator role ada viewer')
    const newRole = roleIn(given, 'ROLE is')
    await withStore(async (store) => {
      const changed = await store.operators.setRole(name, newRole, values.yes === true)
      show(known(keptAdmin(changed, name), name), values.json === true)
      await recordCommand(store, 'operator_role', name)
    })
  },
})

const remove = command({
  args: 'NAME',
  about:
    'Removes an operator, whose sessions end within a second. The audit log keeps the name. To lock somebody out for a while: operator disable.',
  flags: { ...YES, ...JSON_FLAG },
  async run(values, [name = '']) {
    await withStore(async (store) => {
      const removed = known(keptAdmin(await store.operators.remove(name, values.yes === true), name), name)
      await recordCommand(store, 'operator_remove', name)
      if (values.json) printJson(jsonOf(removed))
      else print(`Operator ${name} is removed.\n`)
    })
  },
})

export const operator = commandGroup(
  'Manages the operators of the console',
  'Operators sign in to the console at /console, with a link or a password. Every change is in the audit log.',
  { add, list, link, password: setPassword, role: changeRole, disable, enable, remove },
)

function changeCommand(about: string, action: (store: Store, name: string, isJson: boolean) => Promise<void>): Command {
  return command({
    args: 'NAME',
    about,
    flags: JSON_FLAG,
    run: (values, [name = '']) => withStore((store) => action(store, name, values.json === true)),
  })
}

async function setDisabled(store: Store, name: string, disabledAt: number | null, isJson: boolean): Promise<void> {
  show(known(await store.operators.setDisabled(name, disabledAt), name), isJson)
  await recordCommand(store, disabledAt === null ? 'operator_enable' : 'operator_disable', name)
}

async function showLink(store: Store, one: OperatorRecord, isJson = false): Promise<void> {
  const config = loadConfig(process.env)
  const running = serverOf(config.databaseUrl)
  const code = await createSignInLink(store.operators, one, systemClock.now())
  const url = linkUrl(running?.address ?? configuredAddress(config), code)
  if (isJson) {
    printJson({ ...jsonOf(one), link: url })
    return
  }
  print(record(jsonOf(one)))
  const replace = running
    ? 'Behind a proxy, replace the address by that of the proxy'
    : 'No server of this user runs here: replace the address by that of your server'
  print(`\nThis link signs ${one.name} in once, within 15 minutes. ${replace}:\n\n  ${url}\n`)
}

function tenantIn(text: string): Tenant {
  const tenant = parseTenant(text)
  if (!tenant) throw new UsageError('--tenant takes ACCOUNT/COMPANY, for example 1/1.')
  return tenant
}

function roleIn(text: string, takes: string): OperatorRole {
  const found = OPERATOR_ROLES.find((one) => one === text)
  if (!found) throw new UsageError(`${takes} one of: ${OPERATOR_ROLES.join(', ')}.`)
  return found
}

function keptAdmin(changed: OperatorRecord | 'last_admin' | null, name: string): OperatorRecord | null {
  if (changed !== 'last_admin') return changed
  throw new CommandError(
    `Operator ${name} is the last admin who can sign in. Add another first (./intray operator add NAME --role admin), or add --yes.`,
  )
}

function known(found: OperatorRecord | null, name: string): OperatorRecord {
  if (!found) throw new CommandError(`There is no operator ${name}. './intray operator list' lists all operators.`)
  return found
}

function show(one: OperatorRecord, isJson: boolean): void {
  if (isJson) printJson(jsonOf(one))
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

/** Read without echo, and not from an argument: process lists and shell histories show arguments. */
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
