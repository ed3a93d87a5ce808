// `./intray endpoint set`: makes the endpoint of a subscription, or changes it.

import { BODY_FORMS, type BodyForm, ENDPOINT_LIMITS, type HeaderField } from '../../../model/endpoint.ts'
import { endpointView } from '../../../processing/push/endpoint-views.ts'
import { headerProblem, parseHeaderLine } from '../../../processing/push/header-field.ts'
import { keyOfSecret, SECRET_FORM } from '../../../processing/push/signature.ts'
import { parseTargetUrl } from '../../../processing/push/target-url.ts'
import { systemClock } from '../../../runtime/clock.ts'
import { oneOf, wholeNumber } from '../../../runtime/parameter.ts'
import { recordCommand } from '../../audit.ts'
import { command, UsageError } from '../../command.ts'
import { present, withEndpoints } from '../../endpoint-context.ts'
import { printEndpoint } from '../../endpoint-output.ts'
import { flag, JSON_FLAG, secondsBetween, SUBSCRIPTION_FLAG, TENANT_FLAGS, tenantOf } from '../../flags.ts'
import { readText } from '../../hook-store.ts'
import { subscriptionOf } from '../../processing-context.ts'

const MAX_FILE_BYTES = 64 * 1024
const { timeoutMs: timeout, concurrency } = ENDPOINT_LIMITS

export const endpointSet = command({
  about: `Makes the endpoint of a subscription: its events are delivered to a URL. Changes an existing one; a flag that is left out
changes nothing. Prints the signing secret of a new one once. A subscription without rules of its own gets 15 attempts in about 12 hours.`,
  flags: {
    ...TENANT_FLAGS,
    ...SUBSCRIPTION_FLAG,
    url: { value: 'URL', about: 'Where to: https:// or http://. Private and local addresses need INTRAY_PUSH_ALLOW.' },
    body: { value: 'B', about: 'event: the event as JSON; raw: the payload as it came [event].' },
    header: { value: "'N: V'", about: 'A header to add; replaces all of them. Repeatable.', multiple: true },
    'secret-header-file': {
      value: 'FILE',
      about: 'Further headers, one a line, whose values are never shown. Repeatable.',
      multiple: true,
    },
    'no-headers': { about: 'Removes all headers.' },
    timeout: { value: 'TIME', about: 'How long it may take to answer: 1s to 60s [10s].' },
    concurrency: { value: 'N', about: 'Conversations that are delivered at the same time, on each node: 1 to 64 [8].' },
    'secret-file': { value: 'FILE', about: 'A signing secret of your own (whsec_…), from the first line of a file.' },
    ...JSON_FLAG,
  },
  async run(values) {
    const subscription = subscriptionOf(values)
    const change = {
      url: flag('url', values.url, targetUrl),
      body: flag('body', values.body, oneOf<BodyForm>(...BODY_FORMS)),
      timeoutMs: flag('timeout', values.timeout, secondsBetween({ min: timeout.min / 1000, max: timeout.max / 1000 })),
      concurrency: flag('concurrency', values.concurrency, wholeNumber(concurrency.min, concurrency.max)),
      headers: headersOf(values),
      secret: signingSecretOf(values['secret-file']),
    }
    await withEndpoints(tenantOf(values), subscription, async (context) => {
      const { endpoints, processor, store } = context
      const made = present(await endpoints.set(processor, subscription, change), subscription)
      await recordCommand(store, 'endpoint_set', subscription, processor)
      printEndpoint(endpointView(made, systemClock.now()), made.madeSecret, values.json)
    })
  },
})

const targetUrl = (text: string): string => {
  const parsed = parseTargetUrl(text)
  if ('problem' in parsed) throw new Error(parsed.problem)
  return text
}

export function signingSecretOf(file: string | undefined): string | undefined {
  if (file === undefined) return undefined
  const secret = readText(file, file, MAX_FILE_BYTES).split('\n', 1)[0]!.trim()
  if (keyOfSecret(secret) === null) throw new UsageError(`The secret in --secret-file ${SECRET_FORM}.`)
  return secret
}

interface HeaderFlags {
  readonly header?: readonly string[]
  readonly 'secret-header-file'?: readonly string[]
  readonly 'no-headers'?: boolean
}

/** Undefined: they stay. */
function headersOf(values: HeaderFlags): HeaderField[] | undefined {
  const { header = [], 'secret-header-file': files = [], 'no-headers': none } = values
  const lines = files.flatMap((file) => readText(file, file, MAX_FILE_BYTES).split('\n'))
  const given = [
    ...header.map((line) => ({ line, isSecret: false })),
    ...lines.filter((line) => line.trim() !== '').map((line) => ({ line: line.trim(), isSecret: true })),
  ]
  if (given.length === 0) return none ? [] : undefined
  if (none) throw new UsageError('--no-headers removes all headers: give no other.')
  if (given.length > ENDPOINT_LIMITS.headers) throw new UsageError(`At most ${ENDPOINT_LIMITS.headers} headers.`)
  return given.map(({ line, isSecret }) => {
    const field = parseHeaderLine(line, isSecret)
    // The line itself may be secret, so it is not repeated.
    if (field === null) throw new UsageError('A header must be written as Name: value.')
    const problem = headerProblem(field)
    if (problem !== null) throw new UsageError(`A header ${problem}.`)
    return field
  })
}
