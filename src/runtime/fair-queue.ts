// Fair queue: serves holders in turn, whatever each of them has waiting. A holder's own jobs keep their order. Here as in the
// other files of this folder, a holder is a tenant, or anything else that has a share, as a text.

export class FairQueue<J> {
  readonly #maxPerHolder: number
  /** In the order of their turns. Only holders with waiting jobs. */
  readonly #waiting = new Map<string, J[]>()
  #size = 0

  constructor(maxPerHolder = Number.POSITIVE_INFINITY) {
    this.#maxPerHolder = maxPerHolder
  }

  get size(): number {
    return this.#size
  }

  /** False, and not queued, if the holder has as many jobs waiting as it may. */
  push(holder: string, job: J): boolean {
    const own = this.#waiting.get(holder)
    if (own && own.length >= this.#maxPerHolder) return false
    if (own) own.push(job)
    else this.#waiting.set(holder, [job])
    this.#size += 1
    return true
  }

  /** Puts a job that goes on before the holder's other jobs. It waits for the holder's turn like them. */
  putBack(holder: string, job: J): void {
    const own = this.#waiting.get(holder)
    if (own) own.unshift(job)
    else this.#waiting.set(holder, [job])
    this.#size += 1
  }

  /** The job of the holder whose turn it is, of those that may. The holder's next turn comes after those of all others. */
  next(may: (holder: string) => boolean = () => true): J | undefined {
    const holder = this.#waiting.keys().find(may)
    const own = holder === undefined ? undefined : this.#waiting.get(holder)
    if (holder === undefined || own === undefined) return undefined
    const job = own.shift()
    this.#waiting.delete(holder)
    if (own.length > 0) this.#waiting.set(holder, own)
    this.#size -= 1
    return job
  }

  /** False if the job does not wait. */
  remove(holder: string, job: J): boolean {
    const own = this.#waiting.get(holder)
    const at = own?.indexOf(job) ?? -1
    if (!own || at === -1) return false
    own.splice(at, 1)
    if (own.length === 0) this.#waiting.delete(holder)
    this.#size -= 1
    return true
  }
}
