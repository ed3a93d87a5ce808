// What the metrics show of the store: positions, counts, and ages in seconds.

import type { Clock } from '../runtime/clock.ts'
import type { Store } from '../store/contract/store.ts'

type MeasuredStore = Pick<Store, 'index' | 'metrics' | 'recovery' | 'traits'>

export function createStoreMetrics(store: MeasuredStore, clock: Clock) {
  return async () => {
    const [{ lag, searchLag }, stored, lastBackupAt] = await Promise.all([
      store.index.progress(),
      store.metrics.read(clock.now()),
      store.recovery.lastBackupAt(),
    ])
    const ageOf = (at: number | null) => (at === null ? 0 : Math.max(0, clock.now() - at) / 1000)
    return {
      indexLag: lag,
      searchLag,
      leases: stored.leases,
      unreadable: stored.unreadable,
      oldestPendingSeconds: ageOf(stored.oldestPendingAt),
      backupAgeSeconds: lastBackupAt === null ? null : ageOf(lastBackupAt),
      erasures: stored.erasures,
      erasuresPending: stored.erasuresPending,
      databaseBytes: stored.databaseBytes,
      disk: stored.disk,
      watermarkAgeSeconds: store.traits.concurrentWriters ? ageOf(stored.unseenSince) : null,
    }
  }
}
