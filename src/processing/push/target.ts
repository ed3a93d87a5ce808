// The sealed target of an endpoint: URL, headers, signing secrets. Opened by who delivers or shows it, sealed by who changes it.

import { type Endpoint, type EndpointTarget, sealedFor, type SigningSecret } from '../../model/endpoint.ts'
import type { Tenant } from '../../model/principal.ts'
import type { SecretBox } from '../../runtime/secret-box.ts'

/** Throws SecretUnreadable. */
export function openTarget(box: SecretBox, endpoint: Endpoint): EndpointTarget {
  return JSON.parse(box.open('endpoint', sealedFor(endpoint, endpoint.id), endpoint.sealed)) as EndpointTarget
}

export function sealTarget(box: SecretBox, tenant: Tenant, id: string, target: EndpointTarget): Uint8Array {
  return box.seal('endpoint', sealedFor(tenant, id), JSON.stringify(target))
}

/** Those that still sign. */
export function liveSecrets({ secrets }: EndpointTarget, now: number): SigningSecret[] {
  return secrets.filter(({ endsAt }) => endsAt === null || endsAt > now)
}

/** What must not appear in a text that is kept. */
export function secretTexts({ headers, secrets }: EndpointTarget): string[] {
  return [
    ...headers.filter(({ isSecret }) => isSecret).map(({ value }) => value),
    ...secrets.map(({ secret }) => secret),
  ]
}
