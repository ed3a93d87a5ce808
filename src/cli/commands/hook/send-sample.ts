// `./intray hook send-sample`: stores a sample request of a hook's recipe as a test event, and says what the recipe reads.

import { sampleMessage, type SampleRead } from '../../../hooks/sample-message.ts'
import { createAccept } from '../../../intake/accept.ts'
import type { SubmitResult } from '../../../intake/batcher.ts'
import { systemClock } from '../../../runtime/clock.ts'
import { newUuid } from '../../../runtime/id.ts'
import type { Store } from '../../../store/contract/store.ts'
import { recordCommand } from '../../audit.ts'
import { command, CommandError } from '../../command.ts'
import { JSON_FLAG } from '../../flags.ts'
import { hooksOf, knownHook, readBytes } from '../../hook-store.ts'
import { withStore } from '../../open.ts'
import { print, printable, printJson } from '../../output.ts'

const MAX_SAMPLE_BYTES = 1_048_576

export const hookSendSample = command({
  args: 'KEY_ID',
  about: `Stores a sample request of the recipe as a test event, and says what the recipe reads of it. Its signature is not checked, and it
has no references, so that it is never taken for a message of the vendor.`,
  flags: {
    body: { value: 'FILE', about: "A body of your own instead of the recipe's sample." },
    type: { value: 'TYPE', about: 'Its Content-Type [application/json].' },
    ...JSON_FLAG,
  },
  async run(values, [keyId = '']) {
    const body =
      values.body === undefined ? undefined : readBytes(values.body, values.body, MAX_SAMPLE_BYTES).toString()
    await withStore(async (store) => {
      const { record, recipe } = await knownHook(hooksOf(store), keyId)
      const now = systemClock.now()
      const sample = recipe === null ? 'no_sample' : sampleMessage(recipe, { body, contentType: values.type }, now)
      if (sample === 'no_sample') throw new CommandError('This recipe brings no sample. Give one: --body FILE.')
      if (sample === 'no_message') throw new CommandError('The recipe does not read this body as a message.')
      const { read, ...message } = sample
      const accept = createAccept({ clock: systemClock, submit: (item) => submitOne(store, item) })
      const result = await accept({
        ...message,
        principal: record,
        route: '/v1/console/hooks/{key_id}/samples',
        requestId: newUuid(),
        idempotencyKeys: [],
        traceparent: null,
        userAgent: null,
        remoteAddr: null,
        origin: 'test',
      })
      if ('problem' in result) throw new CommandError(`The sample was not stored: ${result.problem.code}.`)
      await recordCommand(store, 'hook_sample', keyId, record)
      if (values.json) return printJson({ id: result.id, key_id: keyId, read })
      print(`Stored as test event ${result.id}. The recipe reads:\n`)
      for (const [name, text] of linesOf(read)) print(`  ${name}: ${text === null ? '-' : printable(text)}\n`)
    })
  },
})

function linesOf({ source_ref, channel_ref, contact, message_type, snippet }: SampleRead) {
  const { name, email } = contact
  return Object.entries({ source_ref, channel_ref, contact_name: name, contact_email: email, message_type, snippet })
}

async function submitOne(store: Store, item: Parameters<Store['journal']['append']>[0][number]): Promise<SubmitResult> {
  const [outcome] = await store.journal.append([item])
  return outcome && outcome.outcome !== 'failed' ? outcome : { problem: { code: 'internal_error' } }
}
