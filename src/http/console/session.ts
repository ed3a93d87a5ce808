// The operator's session: sign in, show, sign out.

import type { Origin } from '../../auth/audit.ts'
import type { Credentials, SignedIn } from '../../auth/sessions.ts'
import type { Tenant } from '../../model/principal.ts'
import { isoTime } from '../../runtime/clock.ts'
import { oneOf } from '../../runtime/parameter.ts'
import { type Call, jsonAnswer, operatorOf, type Operation, readCommand } from '../call.ts'
import { clearCookie, setCookie } from '../cookie.ts'
import { invalidRequest } from '../problem.ts'
import { withQuery } from '../query.ts'
import { remoteAddress } from '../remote-address.ts'
import { foreignOriginProblem } from '../same-origin.ts'
import type { ConsoleOptions } from './options.ts'

const MAX_SIGN_IN_BYTES = 4096
const MAX_TEXT = 256
const NOT_A_SIGN_IN = invalidRequest(
  'The body is not a sign-in. Send {"name": "…", "password": "…"} or {"link": "…"}, and nothing else.',
)

export function sessionOperations({ sessions, clock, remoteAddr }: ConsoleOptions) {
  const originOf = ({ exchange }: Call): Origin => ({
    requestId: exchange.requestId,
    address: remoteAddress(exchange.address, remoteAddr),
  })

  const checkedSignIn = withQuery({}, async (call) => {
    const read = await readCommand(call, MAX_SIGN_IN_BYTES)
    if ('problem' in read) return read.problem
    const given = credentialsIn(read.body)
    if (!given) return NOT_A_SIGN_IN
    // The sign-in back-off uses the whole address, also where less of it is kept.
    const peer = call.exchange.address ?? ''
    const result = await sessions.signIn(given, peer, originOf(call))
    if ('problem' in result) return result.problem
    const { cookie, signedIn } = result
    const maxAgeS = Math.max(1, Math.floor((signedIn.expiresAt - clock.now()) / 1000))
    return jsonAnswer(sessionView(signedIn), { 'Set-Cookie': setCookie(call.req, cookie, maxAgeS) })
  })

  const signIn: Operation = (call) => foreignOriginProblem(call.req) ?? checkedSignIn(call)

  const showSession = withQuery({}, (call) => jsonAnswer(sessionView(operatorOf(call))))

  const signOut = withQuery({ everywhere: oneOf('true', 'false') }, async (call, query) => {
    const everywhere = query.everywhere === 'true'
    const signedIn = operatorOf(call)
    if (everywhere) await sessions.signOutEverywhere(signedIn, originOf(call))
    else await sessions.signOut(signedIn, originOf(call))
    return jsonAnswer({ everywhere }, { 'Set-Cookie': clearCookie(call.req) })
  })

  return { signIn, showSession, signOut }
}

function credentialsIn(body: Record<string, unknown>): Credentials | null {
  const names = Object.keys(body).toSorted().join()
  const isText = (value: unknown): value is string =>
    typeof value === 'string' && value !== '' && value.length <= MAX_TEXT
  const { name, password, link } = body
  if (names === 'link' && isText(link)) return { link }
  return names === 'name,password' && isText(name) && isText(password) ? { name, password } : null
}

function sessionView({ operator: { name, role, tenants }, expiresAt }: SignedIn) {
  return {
    operator: { name, role, tenants: tenants === null ? 'all' : tenants.map(tenantView) },
    expires_at: isoTime(expiresAt),
  }
}

export function tenantView({ accountId, companyId }: Tenant) {
  return { account_id: accountId, company_id: companyId }
}
