// What is pasted at the vendor: the address of a hook, its verify token, a new secret, and the steps.

import type { HookDetail } from '../../../kits/typescript/src/schema.ts'
import { useMayChange } from '../session.tsx'
import { CopyField } from './credential-parts.tsx'

/** What the API has in place of the secret in a step. */
const SECRET_PLACE = '<SECRET>'

interface HookSetupProps {
  readonly hook: HookDetail
  /** The secret that Intray made just now. */
  readonly secret?: string | null
}

export function HookSetup({ hook, secret = null }: HookSetupProps) {
  const { url, verify_token: verifyToken, setup } = hook
  return (
    <>
      {url === null ? <NoAddress /> : <CopyField label="Address" text={url} />}
      {verifyToken !== null && <CopyField label="Verify token" text={verifyToken} />}
      {secret !== null && <CopyField label="Secret" text={secret} note="shown this once" />}
      {setup === null ? (
        <p className="quiet">This hook has a recipe of its own: set the vendor up as its recipe expects.</p>
      ) : (
        <ol className="setup-steps" aria-label="Steps at the vendor">
          {setup.steps.map((step) => (
            <li key={step}>{secret === null ? step : step.replaceAll(SECRET_PLACE, secret)}</li>
          ))}
        </ol>
      )}
      {hook.signature?.kind === 'none' && (
        <p className="warning">This vendor does not sign its requests: anyone who has the address can send.</p>
      )}
    </>
  )
}

function NoAddress() {
  const mayChange = useMayChange()
  return mayChange ? (
    <p className="trouble">
      The address of this hook cannot be opened: the server lacks the key under which it is sealed. ./intray doctor says
      more.
    </p>
  ) : (
    <p className="quiet">Only admins see the address: it may be all that protects the hook.</p>
  )
}

/** Its requests are refused until a secret of the vendor is entered. */
export function lacksSecret({ signature, secrets }: HookDetail): boolean {
  return signature?.needs_secret === true && secrets !== null && secrets.length === 0
}
