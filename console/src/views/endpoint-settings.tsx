// What an endpoint is set to: body, limits, headers, signing secrets.

import type { ReactNode } from 'react'
import type { Endpoint } from '../../../kits/typescript/src/schema.ts'
import { SafeText } from '../text/safe-text.tsx'
import { Time } from '../ui/controls.tsx'

export function EndpointSettings({ endpoint }: { readonly endpoint: Endpoint }) {
  const rows: readonly (readonly [string, ReactNode])[] = [
    ['Body', endpoint.body === 'raw' ? 'raw: the payload as it was sent' : 'event: as the inbox API gives it'],
    ['Time limit', `${endpoint.timeout_s} s`],
    ['Concurrency', `${endpoint.concurrency} conversations on each node`],
    ['Headers', <Headers key="headers" endpoint={endpoint} />],
    ['Signing secrets', <Secrets key="secrets" endpoint={endpoint} />],
    ['Created', <Time key="created" at={endpoint.created_at} />],
    ['Changed', <Time key="changed" at={endpoint.changed_at} />],
  ]
  return (
    <dl className="facts">
      {rows.map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  )
}

function Headers({ endpoint: { headers } }: { readonly endpoint: Endpoint }) {
  if (headers.length === 0) return 'none'
  return (
    <ul>
      {headers.map(({ name, value }, n) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: a header may be there twice.
        <li key={n}>
          <code>
            <SafeText text={name} maxLength={128} />
          </code>
          : {value === null ? <span className="quiet">secret</span> : <SafeText text={value} maxLength={300} />}
        </li>
      ))}
    </ul>
  )
}

function Secrets({ endpoint: { secrets } }: { readonly endpoint: Endpoint }) {
  return (
    <ul>
      {secrets.map(({ created_at: created, ends_at: ends }) => (
        <li key={created}>
          made <Time at={created} short />
          {ends && (
            <>
              , signs until <Time at={ends} />
            </>
          )}
        </li>
      ))}
    </ul>
  )
}
