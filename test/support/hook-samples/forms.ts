// Samples of forms requests: shaped as the documentation of the sender shows, with data that is made up.

import { FORM_TYPE, formBody, type HookSample, JSON_TYPE, multipartBody } from './sample.ts'

const field = (id: string, type: string) => ({ id, type, ref: `ref-${id}` })
const responseBody = (answers: object[], more: object = {}): string =>
  JSON.stringify({
    event_id: '01KAEVENT1',
    event_type: 'form_response',
    form_response: {
      form_id: 'lT4Z3j',
      token: 'a3a12ec67a1365927098a606107fac15',
      submitted_at: '2026-11-19T10:00:00Z',
      definition: { id: 'lT4Z3j', title: 'Contact', fields: [{ id: 'q1', title: 'Who are you?', type: 'short_text' }] },
      answers,
      ...more,
    },
  })

export const typeformSamples: readonly HookSample[] = [
  {
    title: 'a response with text, e-mail and a choice',
    contentType: JSON_TYPE,
    body: responseBody([
      { type: 'text', text: 'Ada Lovelace', field: field('q1', 'short_text') },
      { type: 'email', email: 'ada@form.test', field: field('q2', 'email') },
      { type: 'choice', choice: { id: 'c1', label: 'By post', ref: 'r1' }, field: field('q3', 'multiple_choice') },
      {
        type: 'choices',
        choices: { ids: ['c2'], labels: ['Gears', 'Cards'], refs: ['r2'] },
        field: field('q4', 'multiple_choice'),
      },
    ]),
    sourceRef: 'typeform:form_response:a3a12ec67a1365927098a606107fac15',
    channelRef: null,
    contactName: null,
    contactEmail: 'ada@form.test',
    messageType: 'form_response',
    text: 'Ada Lovelace\nada@form.test\nBy post\nGears\nCards',
  },
  {
    title: 'a response with hidden fields',
    contentType: JSON_TYPE,
    body: responseBody([{ type: 'number', number: 7, field: field('q1', 'number') }], {
      hidden: { name: 'Grace Hopper', email: 'grace@form.test' },
    }),
    sourceRef: 'typeform:form_response:a3a12ec67a1365927098a606107fac15',
    channelRef: null,
    contactName: 'Grace Hopper',
    contactEmail: 'grace@form.test',
    messageType: 'form_response',
    text: null,
  },
  {
    title: 'a response without answers',
    contentType: JSON_TYPE,
    body: responseBody([]),
    sourceRef: 'typeform:form_response:a3a12ec67a1365927098a606107fac15',
    channelRef: null,
    contactName: null,
    contactEmail: null,
    messageType: 'form_response',
    text: null,
  },
]

export const elementorSamples: readonly HookSample[] = [
  {
    title: 'a form with advanced data',
    contentType: FORM_TYPE,
    body: formBody({
      'form[id]': 'e1f2a3b',
      'form[name]': 'Contact',
      'fields[name][id]': 'name',
      'fields[name][type]': 'text',
      'fields[name][value]': 'Ada Lovelace',
      'fields[email][value]': 'ada@site.test',
      'fields[message][value]': 'Do you repair\r\ndifference engines?',
      'meta[page_url][value]': 'https://site.test/contact',
    }),
    sourceRef: null,
    channelRef: null,
    contactName: 'Ada Lovelace',
    contactEmail: 'ada@site.test',
    messageType: 'Contact',
    text: 'Do you repair\r\ndifference engines?',
  },
  {
    title: 'a form whose fields stand under their labels',
    contentType: FORM_TYPE,
    body: formBody({
      Name: 'Grace Hopper',
      Email: 'grace@site.test',
      Message: 'Call back',
      Date: 'November 19, 2026',
      form_id: 'e1f2a3b',
      form_name: 'Call',
    }),
    sourceRef: null,
    channelRef: null,
    contactName: 'Grace Hopper',
    contactEmail: 'grace@site.test',
    messageType: 'Call',
    text: 'Call back',
  },
  {
    title: 'a form with labels in another language',
    contentType: `${FORM_TYPE}; charset=UTF-8`,
    body: formBody({ Nachricht: 'Bitte um Rückruf', Telefon: '+49 30 1', form_name: 'Rückruf' }),
    sourceRef: null,
    channelRef: null,
    contactName: null,
    contactEmail: null,
    messageType: 'Rückruf',
    text: 'Nachricht: Bitte um Rückruf\nTelefon: +49 30 1\nform_name: Rückruf',
  },
]

export const gravityFormsSamples: readonly HookSample[] = [
  {
    title: 'an entry with all fields',
    contentType: JSON_TYPE,
    body: JSON.stringify({
      '1.3': 'Ada',
      '1.6': 'Lovelace',
      '3': 'Two wheels, please',
      id: '418',
      form_id: '2',
      date_created: '2026-11-19 10:00:00',
      status: 'active',
    }),
    sourceRef: 'gf:2:418:2026-11-19 10:00:00',
    channelRef: null,
    contactName: null,
    contactEmail: null,
    messageType: null,
    text: 'Two wheels, please\nAda\nLovelace\n418\n2\n2026-11-19 10:00:00\nactive',
  },
  {
    title: 'an entry with selected fields that have names',
    contentType: JSON_TYPE,
    body: JSON.stringify({
      id: 419,
      form_id: 2,
      date_created: '2026-11-19 10:00:01',
      name: 'Grace Hopper',
      email: 'grace@site.test',
      message: 'One card',
    }),
    sourceRef: 'gf:2:419:2026-11-19 10:00:01',
    channelRef: null,
    contactName: 'Grace Hopper',
    contactEmail: 'grace@site.test',
    messageType: null,
    text: 'One card',
  },
  {
    title: 'an entry as a form, without its id',
    contentType: FORM_TYPE,
    body: formBody({ name: 'Ada', email: 'ada@site.test', message: 'Again' }),
    sourceRef: null,
    channelRef: null,
    contactName: 'Ada',
    contactEmail: 'ada@site.test',
    messageType: null,
    text: 'Again',
  },
]

const email = {
  recipient: 'sales@mg.shop.test',
  sender: 'ada@a.test',
  subject: 'Re: Offer',
  from: 'Ada Lovelace <ada@a.test>',
  'Message-Id': '<CAF1@mail.a.test>',
  'body-plain': 'We take it.\n\n> Offer 7',
  'stripped-text': 'We take it.',
}

/** The fields of the signature come with the signature. */
export const mailgunSamples: readonly HookSample[] = [
  {
    title: 'an e-mail',
    contentType: FORM_TYPE,
    body: formBody(email),
    sourceRef: 'mailgun:sales@mg.shop.test:<CAF1@mail.a.test>',
    channelRef: 'mailgun:sales@mg.shop.test:ada@a.test',
    contactName: 'Ada Lovelace <ada@a.test>',
    contactEmail: 'ada@a.test',
    messageType: 'email',
    text: 'Re: Offer\nWe take it.',
  },
  {
    title: 'an e-mail with an attachment',
    contentType: 'multipart/form-data; boundary=0f3c2a1b',
    body: multipartBody('0f3c2a1b', email, '%PDF-1.7 subject=no\r\n--0f3c2a1 not a boundary'),
    sourceRef: 'mailgun:sales@mg.shop.test:<CAF1@mail.a.test>',
    channelRef: 'mailgun:sales@mg.shop.test:ada@a.test',
    contactName: 'Ada Lovelace <ada@a.test>',
    contactEmail: 'ada@a.test',
    messageType: 'email',
    text: 'Re: Offer\nWe take it.',
  },
  {
    title: 'an event',
    contentType: JSON_TYPE,
    body: JSON.stringify({
      'event-data': {
        id: 'CPgfbmQMTCKtHW6uIWtuVe',
        event: 'failed',
        timestamp: 1_763_500_000.5,
        recipient: 'grace@b.test',
        message: { headers: { subject: 'Offer 7', 'message-id': 'x@mg.shop.test' } },
        'delivery-status': { message: 'No such mailbox' },
      },
    }),
    sourceRef: 'mailgun:CPgfbmQMTCKtHW6uIWtuVe',
    channelRef: 'mailgun:grace@b.test',
    contactName: null,
    contactEmail: 'grace@b.test',
    messageType: 'failed',
    text: 'Offer 7',
  },
]
