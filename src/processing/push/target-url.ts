// The URL of an endpoint: what it may be, and how it is shown. Its path and query may be secrets of the receiver, so a log names
// the host at most, and a list hides the values of the query.

export const MAX_URL_UNITS = 2000

/** The URL, or why it cannot be an endpoint's. Addresses are checked when a push connects, since names change. */
export function parseTargetUrl(text: string): { readonly url: URL } | { readonly problem: string } {
  if (text.length > MAX_URL_UNITS) return { problem: `must have at most ${MAX_URL_UNITS} characters` }
  const url = URL.parse(text)
  if (url === null || !/^https?:$/.test(url.protocol)) {
    return { problem: 'must be a URL that begins with https:// or http://' }
  }
  if (url.username !== '' || url.password !== '') {
    return { problem: 'must not hold a user or password; send them in a secret header: Authorization: Basic …' }
  }
  if (url.hash !== '') return { problem: 'must not have a fragment (#…), which is never sent' }
  return { url }
}

/** A host name, or an address without brackets. */
export function hostOf({ hostname }: Pick<URL, 'hostname'>): string {
  return hostname.replace(/^\[|\]$/g, '')
}

export function shownUrl(text: string): string {
  const url = URL.parse(text)
  if (url === null) return '[not a URL]'
  return `${url.origin}${url.pathname}${url.search === '' ? '' : '?[redacted]'}`
}
