// A query of `pg` whose parameters are laid out already, together with all that follows them: it goes out in one piece, asks for no
// description of a row that we know, and answers with the cells as PostgreSQL wrote them. Once for each batch of messages, that
// is worth it: `pg` alone took a tenth of the main thread. It is a Query of theirs because `pg` lets no other travel before the
// answer to the one before is there.

import pg from 'pg'
import type { BindMessage } from './bind-message.ts'

/** What we use of `pg` and its types do not tell, as the methods below that it calls. */
interface Wire extends pg.Connection {
  readonly parsedStatements: Record<string, string>
  readonly submittedNamedStatements: Record<string, string>
}

export class BoundQuery extends pg.Query {
  readonly name: string
  readonly query_timeout: number
  readonly #text: string
  readonly #message: BindMessage
  #cells: readonly unknown[] = []
  callback: (error: Error | null) => void = () => {}

  constructor(
    { name, text }: { readonly name: string; readonly text: string },
    message: BindMessage,
    timeoutMs: number,
  ) {
    super(text)
    this.name = name
    this.query_timeout = timeoutMs
    this.#text = text
    this.#message = message
  }

  /** The cells of its one row. */
  ask(client: pg.Client): Promise<readonly unknown[]> {
    return new Promise((resolve, reject) => {
      this.callback = (error) => (error ? reject(error) : resolve(this.#cells))
      client.query(this)
    })
  }

  override submit = (connection: pg.Connection): null => {
    const { parsedStatements, submittedNamedStatements, stream } = connection as Wire
    if (parsedStatements[this.name] === undefined && submittedNamedStatements[this.name] === undefined) {
      connection.parse({ name: this.name, text: this.#text, types: [] }, true)
      submittedNamedStatements[this.name] = this.#text
    }
    if (stream.writable) stream.write(this.#message.bytes)
    return null
  }

  handleDataRow({ fields }: { readonly fields: readonly unknown[] }): void {
    this.#cells = fields
  }

  handleCommandComplete(): void {}

  handleError(error: Error): void {
    this.callback(error)
  }

  handleReadyForQuery(): void {
    this.callback(null)
  }
}
