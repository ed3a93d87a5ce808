// Store failures. Callers branch on the kind, never on a database's own codes or texts.

export type StoreFailureKind =
  /** The disk or database accepts no writes, or cannot be reached. It may recover by itself. */
  | 'unavailable'
  /** The storage can no longer be trusted (I/O error, writer gone): the process must exit. */
  | 'fatal'
  /** The operation met damaged pages and changed nothing. What does not touch them works. */
  | 'damaged'
  /** This operation cannot succeed, whatever the state of the storage. */
  | 'rejected'

export class StoreFailure extends Error {
  readonly kind: StoreFailureKind

  constructor(kind: StoreFailureKind, message: string, options?: ErrorOptions) {
    super(message, options)
    this.name = 'StoreFailure'
    this.kind = kind
  }
}

/** The caller of a read ended its request. */
export const callerGone = (): StoreFailure => new StoreFailure('unavailable', 'the caller is gone')

/** The store cannot be opened; the message tells the operator what is wrong and what to do. */
export class StoreRefused extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options)
    this.name = 'StoreRefused'
  }
}

/** There is no database where the caller asked for an existing one. */
export class DatabaseMissing extends StoreRefused {}

/** The database is too damaged to be opened. */
export class DatabaseDamaged extends StoreRefused {}
