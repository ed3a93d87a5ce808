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

/** A shorter text is no secret, and would be masked wherever a word has it. */
const MIN_SECRET = 8

/** What must not appear in a text that is kept: an answer may repeat the request. */
export function secretTexts({ url, headers, secrets }: EndpointTarget): string[] {
  const values = headers.filter(({ isSecret }) => isSecret).map(({ value }) => value)
  // Of `Bearer abc` and `a=1; b=2` also the parts.
  const parts = values.flatMap((value) => value.split(/[\s;,=]+/))
  const query = Array.from(new URL(url).searchParams.values())
  const texts = [...values, ...parts, ...query, ...secrets.map(({ secret }) => secret)]
  return [...new Set(texts.filter(({ length }) => length >= MIN_SECRET).flatMap(spellings))].toSorted(
    (a, b) => b.length - a.length,
  )
}

/** As answers repeat a text: in JSON (PHP also escapes slashes), in HTML, in a URL, in base64. */
function spellings(text: string): string[] {
  const json = JSON.stringify(text).slice(1, -1)
  const html = text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')
  const quoted = html.replaceAll('"', '&quot;')
  const base64 = Buffer.from(text).toString('base64').replace(/=+$/, '')
  const url = encodeURIComponent(text)
  return [text, json, json.replaceAll('/', '\\/'), html, quoted, quoted.replaceAll("'", '&#039;'), url, base64]
}
