// Tokens and hooks of a store: reads that every request may need on the main thread, others in the reader, changes in the writer.

import type { DatabaseSync } from 'node:sqlite'
import { importedTokenKey } from '../../../model/imported-token.ts'
import type { Tenant } from '../../../model/principal.ts'
import type { Store } from '../../contract/store.ts'
import { guard } from '../guarded-calls.ts'
import type { Executor, Operations } from '../operations.ts'
import type { Reads } from '../reads.ts'
import { readMeta } from '../schema.ts'
import { findHook } from './hooks.ts'
import { prepareTokenReads } from './tokens.ts'

interface Connections {
  readonly main: DatabaseSync
  readonly writer: Pick<Executor<Operations>, 'run'>
  /** In the turn of a tenant. */
  readonly read: <N extends keyof Reads>(
    tenant: Tenant,
    name: N,
    args: Parameters<Reads[N]>,
  ) => Promise<Awaited<ReturnType<Reads[N]>>>
  readonly readOwn: <N extends keyof Reads>(
    name: N,
    args: Parameters<Reads[N]>,
  ) => Promise<Awaited<ReturnType<Reads[N]>>>
}

export function createTokenStores({ main, writer, read, readOwn }: Connections): Pick<Store, 'tokens' | 'hooks'> {
  const tokens = prepareTokenReads(main)
  return {
    tokens: {
      create: (token) => writer.run('createToken', [token]),
      createFirst: (token) => writer.run('createFirstToken', [token]),
      find: (keyId) => guard(() => tokens.find(keyId)),
      list: (query = {}) => readOwn('listTokens', [query]),
      listOf: (tenant, ...args) => read(tenant, 'listTokensOf', [tenant, ...args]),
      tenants: (after, limit) => readOwn('listTenants', [after, limit]),
      hasTenant: (tenant) => guard(() => tokens.hasTenant(tenant)),
      successorOf: (keyId) => guard(() => tokens.successorOf(keyId)),
      setActive: (keyId, isActive, now) => writer.run('setTokenActive', [keyId, isActive, now]),
      setRateLimit: (keyId, rateLimit) => writer.run('setTokenRateLimit', [keyId, rateLimit]),
      rotate: (successor, oldExpiresAt, now) => writer.run('rotateToken', [successor, oldExpiresAt, now]),
      touch: (uses) => writer.run('touchTokens', [uses]),
      importKey: () => guard(() => importedTokenKey(readMeta(main, 'dedupe_key'))),
      hasImported: () => guard(() => tokens.hasImported()),
      generation: () => guard(() => tokens.generation()),
      changedSince: (generation) => guard(() => tokens.changedSince(generation)),
    },
    hooks: {
      create: (hook) => writer.run('createHook', [hook]),
      find: (keyId) => guard(() => findHook(main, keyId)),
      list: (afterKeyId, limit) => readOwn('listHooks', [afterKeyId, limit]),
      reseal: (keyId, was, sealed) => writer.run('resealHook', [keyId, was, sealed]),
      rotate: (successor, oldExpiresAt, now) => writer.run('rotateHook', [successor, oldExpiresAt, now]),
      keepRecipe: (recipe) => writer.run('keepRecipe', [recipe]),
      recipe: (tenant, digest) => read(tenant, 'storedRecipe', [tenant, digest]),
      deliveries: (tenant, ...args) => read(tenant, 'hookDeliveries', [tenant, ...args]),
    },
  }
}
