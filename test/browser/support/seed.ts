// Messages to look at: some of everything that a view can show.

import { intrayJson } from '../../support/command.ts'
import type { Desk } from './desk.ts'

const PEOPLE = ['Ada Lovelace', 'Grace Hopper', 'Zoë Müller', 'Jun Sato', 'Noor Haddad', 'Tomás Ó Briain', 'שרה לוי']
const TEXTS = [
  'Do you ship to Malta?',
  'Thanks, that worked.',
  'The invoice shows the wrong address. Could you send it again with the new one?',
  'Is the showroom open on Monday?',
  'I would like an offer for 40 chairs, delivered before the end of the month.',
  'Order 5512 arrived damaged, see the photos.',
  'שלום, האם אפשר להזמין?',
]
const CHANNELS = ['example.org/contact', 'example.org/offers', 'whatsapp:4512', 'example.org/support']

export async function seed(desk: Desk, events: number): Promise<void> {
  for (let n = 0; n < events; n++) {
    const name = PEOPLE[n % PEOPLE.length]!
    const email = `${name.split(' ')[0]!.toLowerCase()}@example.org`
    await desk.post({
      source_ref: `cf7:12:${9000 + n}`,
      channel_ref: CHANNELS[n % CHANNELS.length],
      contact: { name, email },
      message: { type: 'text', text: TEXTS[n % TEXTS.length] },
      meta: { form_id: n % 5 === 4 ? '12' : 12, page_url: 'https://example.org/contact' },
    })
  }
  // Sent again, with the same bytes and with others.
  const again = { source_ref: 'order:77', channel_ref: CHANNELS[1], contact: { name: 'Grace Hopper' } }
  const text = (value: string) => ({ ...again, message: { type: 'text', text: value }, meta: { total: 10 } })
  for (const body of [text('Two chairs, please.'), text('Two chairs, please.'), text('Three chairs, please.')]) {
    await desk.post(body)
  }
  await refuse(desk)
}

async function refuse(desk: Desk): Promise<void> {
  await desk.post('{"message":{"text":"One comma too many",}}')
  await desk.post('name=Ada&text=Hello', { 'Content-Type': 'application/x-www-form-urlencoded' })
  await desk.post({ source_ref: [12], message: { text: 'The reference is a list' } })
}

/** Has processors work: some events done, some leased, one dead. */
export async function process(desk: Desk): Promise<void> {
  const where = ['--account', '1', '--company', '1']
  const { token } = await intrayJson(['token', 'create', ...where, '--scope', 'processor', '--label', 'CRM'], desk.env)
  const call = async (path: string, body: object) => {
    const answer = await fetch(`${desk.url}/v1/inbox${path}`, {
      method: 'POST',
      headers: { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' },
      body: JSON.stringify(body),
    })
    return (await answer.json()) as { readonly events: { readonly id: number; readonly lease_id: string }[] }
  }
  const claim = async (limit: number) => (await call('/claims', { limit, lease_s: 3600, ordered: false })).events
  const done = await claim(6)
  await call('/claims/ack', { events: done.map(({ id, lease_id }) => ({ id, lease_id })) })
  await claim(3)
  for (;;) {
    const [event] = await claim(1)
    if (!event) return
    const { id, lease_id } = event
    const released = await call('/claims/release', { id, lease_id, delay_s: 0, error: 'The CRM answered 500.' })
    if ((released.events as unknown as { state: string }[])[0]?.state === 'dead') return
  }
}
