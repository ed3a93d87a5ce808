// Prints an endpoint for people or programs.

import type { EndpointView } from '../processing/push/endpoint-views.ts'
import { print, printJson, record } from './output.ts'

export function printEndpoint(view: EndpointView, madeSecret: string | null, isJson = false): void {
  if (isJson) {
    printJson({ ...view, ...(madeSecret === null ? {} : { secret: madeSecret }) })
    return
  }
  const { headers, secrets, circuit, ...rest } = view
  print(
    record({
      ...rest,
      headers: headers.map(({ name, value }) => `${name}: ${value ?? '[secret]'}`).join(', '),
      secrets: secrets.map(({ ends_at: endsAt }) => (endsAt === null ? 'current' : `until ${endsAt}`)).join(', '),
      circuit:
        circuit.opened_at === null ? 'closed' : `open since ${circuit.opened_at}, next try ${circuit.next_try_at}`,
    }),
  )
  if (madeSecret !== null)
    print(`\nThe signing secret, shown this once. The receiver verifies with it:\n\n  ${madeSecret}\n`)
}
