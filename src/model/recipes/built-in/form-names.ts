// Names that people give the fields of contact forms, for form builders that send a field under its label or id.

const NAMES = [
  'name',
  'Name',
  'your-name',
  'Your Name',
  'full_name',
  'Full Name',
  'fullname',
  'first_name',
  'First Name',
]
const EMAILS = [
  'email',
  'Email',
  'E-Mail',
  'e-mail',
  'E-mail',
  'your-email',
  'Your Email',
  'email_address',
  'Email Address',
]
const TEXTS = [
  'message',
  'Message',
  'your-message',
  'Your Message',
  'comments',
  'Comments',
  'comment',
  'Comment',
  'text',
]

export const FORM_NAMES = { contactName: NAMES, contactEmail: EMAILS, text: TEXTS } as const
