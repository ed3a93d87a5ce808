// Gravity Forms, Webhooks add-on: the entry, as JSON or as a form. It has no signature: the address is the secret.

import type { BuiltInRecipe } from '../recipe.ts'
import { FORM_NAMES } from './form-names.ts'

export const gravityForms: BuiltInRecipe = {
  name: 'gravity-forms',
  version: '1',
  title: 'Gravity Forms',
  bodies: ['json', 'form'],
  signature: { kind: 'none' },
  // Each site counts its entries from 1: the time of the entry tells two sites apart.
  sourceRef: ['gf:{/form_id}:{/id}:{/date_created}', 'gf:{form:form_id}:{form:id}:{form:date_created}'],
  channelRef: [],
  batch: [],
  index: {
    contactName: FORM_NAMES.contactName.flatMap(eitherWay),
    contactEmail: FORM_NAMES.contactEmail.flatMap(eitherWay),
    messageType: [],
    text: [...FORM_NAMES.text.flatMap(eitherWay), '{strings:}', '{form}'],
  },
  answer: null,
  guide: {
    secret: null,
    steps: [
      'In the settings of the form, under Webhooks, add a feed with the request URL {url}, the method POST and the format JSON.',
      'Choose All Fields. With Select Fields, add the fields id, form_id and date_created, or no entry has a reference; name others name, email and message.',
    ],
  },
}

function eitherWay(name: string): string[] {
  return [`{/${name}}`, `{form:${name}}`]
}
