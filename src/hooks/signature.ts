// Checks the signature of a hook's request, as its recipe says. The verdict names what to look at, and repeats no secret, no signature and
// nothing else of the request. The work is cut into slices, because the HMAC of a large body takes milliseconds.

import type { BodyReader } from '../model/recipes/body-reader.ts'
import type { CompiledRecipe } from '../model/recipes/compiled.ts'
import { HmacCheck } from './hmac-check.ts'
import type { HookRequest } from './request.ts'
import { equalSecrets } from './secret-comparison.ts'
import { refused, type SignatureCheck, type SignatureContext, type SignatureVerdict } from './signature-verdict.ts'
import { TwilioCheck } from './twilio-check.ts'

/** `body`: of this request, and done if the recipe's signature is in the body. */
export function checkSignature(
  compiled: CompiledRecipe,
  request: HookRequest,
  body: BodyReader,
  context: SignatureContext,
): SignatureCheck {
  const { signature } = compiled.recipe
  if (signature.kind === 'none') return done({ ok: true, secret: null })
  if (context.secrets.length === 0)
    return done(refused('no_secret', 'The hook has no secret. Set the one of the sender.'))
  if (signature.kind === 'twilio') return new TwilioCheck(request, context)
  if (signature.kind === 'hmac') return new HmacCheck(compiled, signature, request, body, context)
  const { header, prefix = '' } = signature
  const given = request.header(header)
  if (given === null)
    return done(refused('missing_signature', `The header ${header} is missing. Set the secret at the sender.`))
  if (!given.startsWith(prefix))
    return done(refused('malformed_signature', `The header ${header} does not begin with ${JSON.stringify(prefix)}.`))
  const secret = context.secrets.findIndex((one) => one !== '' && equalSecrets(one, given.slice(prefix.length)))
  return done(
    secret === -1
      ? refused('wrong_signature', `The header ${header} does not hold the hook's secret. Set it again at the sender.`)
      : { ok: true, secret },
  )
}

function done(verdict: SignatureVerdict): SignatureCheck {
  return { isDone: true, run: () => 0, verdict }
}
