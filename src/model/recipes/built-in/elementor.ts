// Elementor Pro forms, action "Webhook": a form, with or without "Advanced Data". It has no id and no signature: two equal enquiries are
// two leads, and the address is the secret.

import type { BuiltInRecipe } from '../recipe.ts'
import { FORM_NAMES } from './form-names.ts'

export const elementor: BuiltInRecipe = {
  name: 'elementor',
  version: '1',
  title: 'Elementor form',
  bodies: ['form', 'multipart'],
  signature: { kind: 'none' },
  sourceRef: [],
  channelRef: [],
  batch: [],
  index: {
    contactName: FORM_NAMES.contactName.flatMap(eitherWay),
    contactEmail: FORM_NAMES.contactEmail.flatMap(eitherWay),
    messageType: ['{form:form[name]}', '{form:form_name}'],
    text: [...FORM_NAMES.text.flatMap(eitherWay), '{form}'],
  },
  answer: null,
  guide: {
    secret: null,
    steps: [
      'In the form widget, under Actions After Submit, add Webhook, and paste {url} as webhook URL.',
      'Anyone who has the address can send: rotate the hook if it was seen.',
    ],
  },
}

/** With "Advanced Data" a field stands under its id, otherwise under its label. */
function eitherWay(name: string): string[] {
  return [`{form:fields[${name}][value]}`, `{form:${name}}`]
}
