// What a sample of a hook's request is: shaped as the vendor's documentation shows, with data that is made up.

/** In place of a digest, which is computed from the body. */
export const SHA256 = '{sha256}'

export interface HookSample {
  readonly title: string
  readonly contentType: string
  /** Without those of the signature. */
  readonly headers?: Readonly<Record<string, string>>
  readonly body: string
  /** With HOOK_STAND_IN for the hook. */
  readonly sourceRef: string | null
  readonly channelRef: string | null
  readonly contactName: string | null
  readonly contactEmail: string | null
  readonly messageType: string | null
  readonly text: string | null
  readonly isBatch?: boolean
}

export const JSON_TYPE = 'application/json'
export const FORM_TYPE = 'application/x-www-form-urlencoded'

export function formBody(fields: Readonly<Record<string, string>>): string {
  return new URLSearchParams(fields).toString()
}

export function multipartBody(boundary: string, fields: Readonly<Record<string, string>>, file?: string): string {
  const parts = Object.entries(fields).map(
    ([name, value]) => `--${boundary}\r\nContent-Disposition: form-data; name="${name}"\r\n\r\n${value}\r\n`,
  )
  const attached =
    file === undefined
      ? ''
      : `--${boundary}\r\nContent-Disposition: form-data; name="attachment-1"; filename="plan.pdf"\r\nContent-Type: application/pdf\r\n\r\n${file}\r\n`
  return `${parts.join('')}${attached}--${boundary}--\r\n`
}
