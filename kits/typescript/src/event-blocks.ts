// Splits a stream of server-sent events into blocks. Runs in Node and in browsers.

export interface EventBlock {
  /** The id to resume after, if the block names one. */
  readonly id: string | null
  /** One line of JSON; null in a block that only names an id, and in a heartbeat. */
  readonly data: string | null
}

export class EventBlocks {
  #rest = ''

  /** The blocks that are complete with this piece of text. */
  push(text: string): EventBlock[] {
    const blocks = (this.#rest + text).split('\n\n')
    this.#rest = blocks.pop() ?? ''
    return blocks.map((block) => ({
      id: /^id: (.*)$/m.exec(block)?.[1] ?? null,
      data: /^data: (.*)$/m.exec(block)?.[1] ?? null,
    }))
  }
}
