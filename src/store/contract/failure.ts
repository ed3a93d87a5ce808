// How a store fails. Callers branch on the kind, never on a database's own codes or texts.

export type StoreFailureKind =
  /** The disk or database refused to take more, or cannot be reached. It may come back by itself. */
  | 'unavailable'
  /** The storage can no longer be trusted (I/O error, corruption, writer gone): the process has to end. */
  | 'fatal'
  /** This one operation cannot be done, whatever the state of the storage. */
  | 'rejected'

export class StoreFailure extends Error {
  readonly kind: StoreFailureKind

  constructor(kind: StoreFailureKind, message: string, options?: ErrorOptions) {
    super(message, options)
    this.name = 'StoreFailure'
    this.kind = kind
  }
}

/** A store that cannot be opened, with a sentence for the operator: what is wrong and what to do. */
export class StoreRefused extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options)
    this.name = 'StoreRefused'
  }
}
