// "Send a test": sends a signed test message to the endpoint and shows its answer. Nothing of it is kept.

import { useMutation } from '@tanstack/react-query'
import type { EndpointTestResult } from '../../../kits/typescript/src/schema.ts'
import { LineView } from '../json/line-view.tsx'
import { linesOf } from '../json/lines.ts'
import { useApi, useMayChange } from '../session.tsx'
import { SafeText } from '../text/safe-text.tsx'
import { count, ErrorNotice, Mark } from '../ui/controls.tsx'

export function EndpointTest({ subscription }: { readonly subscription: string }) {
  const api = useApi()
  const mayChange = useMayChange()
  const send = useMutation({
    mutationFn: () => api.call('POST /v1/inbox/subscriptions/{name}/endpoint/test', { path: { name: subscription } }),
  })
  return (
    <section className="card stack" aria-labelledby="endpoint-test">
      <h3 id="endpoint-test">Send a test</h3>
      <p className="quiet">A signed message with the header Intray-Test: true. It is no event and changes no state.</p>
      <p className="actions">
        <button
          type="button"
          className="button main-button"
          disabled={!mayChange || send.isPending}
          onClick={() => send.mutate()}
        >
          {send.isPending ? 'Sending …' : 'Send a test'}
        </button>
      </p>
      {send.isError && <ErrorNotice error={send.error} />}
      {send.isSuccess && <TestResult result={send.data.test} />}
    </section>
  )
}

function TestResult({ result }: { readonly result: EndpointTestResult }) {
  const { status, reason, ms, body, webhook_id: id } = result
  const isTaken = status !== null && status >= 200 && status < 300
  return (
    <div className="stack" role="status">
      <p>
        <Mark look={isTaken ? 'done' : 'dead'}>{status ?? 'no answer'}</Mark> after {count(ms)} ms
      </p>
      {reason !== null && (
        <p className="trouble">
          <SafeText text={reason} maxLength={600} />
        </p>
      )}
      {body !== '' && <LineView lines={linesOf(body)} label="The beginning of the answer" />}
      <p className="quiet digest">webhook-id {id}</p>
    </div>
  )
}
