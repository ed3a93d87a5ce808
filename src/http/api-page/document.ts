// The parts of the OpenAPI document that the page shows, and queries over them: operations, fields, error codes. An unknown or
// circular reference throws, because it is a mistake in the document.

export interface Reference {
  readonly $ref?: string
}

export interface Schema extends Reference {
  readonly type?: string | readonly string[]
  readonly const?: unknown
  readonly enum?: readonly unknown[]
  readonly description?: string
  readonly properties?: Readonly<Record<string, Schema>>
  readonly required?: readonly string[]
  readonly items?: Schema
  readonly oneOf?: readonly Schema[]
}

export interface Example extends Reference {
  readonly summary?: string
  readonly description?: string
  readonly value?: unknown
}

export interface Media {
  readonly schema?: Schema
  readonly example?: unknown
  readonly examples?: Readonly<Record<string, Example>>
}

/** A parameter or a header. */
export interface Parameter extends Reference {
  readonly name?: string
  readonly in?: string
  readonly required?: boolean
  readonly description?: string
  readonly schema?: Schema
  readonly example?: unknown
}

/** A request body or an answer. */
export interface Body extends Reference {
  readonly description?: string
  readonly headers?: Readonly<Record<string, Parameter>>
  readonly content?: Readonly<Record<string, Media>>
}

export type Security = readonly Readonly<Record<string, readonly string[]>>[]

export interface Operation {
  readonly operationId?: string
  readonly tags?: readonly string[]
  readonly summary?: string
  readonly description?: string
  readonly deprecated?: boolean
  readonly security?: Security
  readonly parameters?: readonly Parameter[]
  readonly requestBody?: Body
  readonly responses?: Readonly<Record<string, Body>>
}

export interface ApiDocument {
  readonly info: {
    readonly title: string
    readonly version: string
    readonly summary?: string
    readonly description?: string
  }
  readonly servers?: readonly { readonly url: string; readonly description?: string }[]
  readonly tags?: readonly { readonly name: string; readonly description?: string }[]
  readonly security?: Security
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>
  readonly components?: unknown
}

/** The target of the `$ref`, or the node itself without one. */
export function resolve<T extends Reference>(document: ApiDocument, node: T): T {
  let found: T = node
  for (let hops = 0; found.$ref !== undefined; hops++) {
    if (hops === 8) throw new Error(`api document: ${node.$ref} leads in circles`)
    found = lookUp(document, found.$ref) as T
  }
  return found
}

function lookUp(document: ApiDocument, ref: string): unknown {
  let node: unknown = document
  for (const step of ref.replace(/^#\//, '').split('/')) {
    const key = step.replaceAll('~1', '/').replaceAll('~0', '~')
    node = typeof node === 'object' && node !== null ? (node as Record<string, unknown>)[key] : undefined
  }
  if (typeof node !== 'object' || node === null) throw new Error(`api document: ${ref} leads nowhere`)
  return node
}

export interface NamedOperation {
  readonly method: string
  readonly path: string
  readonly operation: Operation
  /** Its anchor on the page. */
  readonly anchor: string
}

export interface OperationGroup {
  readonly name: string
  readonly description: string
  readonly operations: readonly NamedOperation[]
}

/** Operations by their first tag, in the order of the tags; unknown tags come last. */
export function operationGroups(document: ApiDocument): readonly OperationGroup[] {
  const byTag = Map.groupBy(operationsOf(document), ({ operation }) => operation.tags?.[0] ?? 'Other')
  const tags = document.tags ?? []
  const others = [...byTag.keys()].filter((name) => !tags.some((tag) => tag.name === name)).map((name) => ({ name }))
  return [...tags, ...others].map((tag: { name: string; description?: string }) => ({
    name: tag.name,
    description: tag.description ?? '',
    operations: byTag.get(tag.name) ?? [],
  }))
}

function operationsOf(document: ApiDocument): readonly NamedOperation[] {
  return Object.entries(document.paths).flatMap(([path, item]) =>
    Object.entries(item).map(([method, operation]) => ({
      method: method.toUpperCase(),
      path,
      operation,
      anchor: `${method}${path}`.replace(/[^A-Za-z0-9]+/g, '-').toLowerCase(),
    })),
  )
}

export interface Field {
  /** Dotted, with [] for the entries of an array. */
  readonly path: string
  readonly type: string
  readonly required: boolean
  readonly description: string
}

/** The fields of a schema, nested ones after their parent. Fields of alternatives are merged. */
export function fieldsOf(document: ApiDocument, schema: Schema, prefix = ''): readonly Field[] {
  const resolved = resolve(document, schema)
  if (resolved.oneOf) return mergeFields(resolved.oneOf.map((one) => fieldsOf(document, one, prefix)))
  if (resolved.items) return fieldsOf(document, resolved.items, `${prefix}[]`)
  return Object.entries(resolved.properties ?? {}).flatMap(([name, property]) => {
    const found = resolve(document, property)
    const path = prefix === '' ? name : `${prefix}.${name}`
    const required = resolved.required?.includes(name) ?? false
    const field = { path, type: typeOf(document, found), required, description: found.description ?? '' }
    return [field, ...fieldsOf(document, found, path)]
  })
}

function mergeFields(alternatives: readonly (readonly Field[])[]): readonly Field[] {
  const byPath = Map.groupBy(alternatives.flat(), (field) => field.path)
  return [...byPath].map(([path, fields]) => ({
    path,
    type: unique(fields.map((field) => field.type)).join(' | '),
    required: fields.length === alternatives.length && fields.every((field) => field.required),
    description: unique(fields.map((field) => field.description)).join('\n\n'),
  }))
}

/** The type of a value, or its allowed values. */
function typeOf(document: ApiDocument, schema: Schema): string {
  const found = resolve(document, schema)
  if (found.const !== undefined) return JSON.stringify(found.const)
  if (found.enum) return found.enum.map((value) => JSON.stringify(value)).join(' | ')
  if (found.items) return `array of ${typeOf(document, found.items)}`
  return typeof found.type === 'string' ? found.type : (found.type ?? ['any']).join(' | ')
}

export function examplesOf(document: ApiDocument, media: Media): readonly Example[] {
  if (media.example !== undefined) return [{ value: media.example }]
  return Object.values(media.examples ?? {}).map((example) => resolve(document, example))
}

/** The error codes in the examples of an answer. */
export function codesOf(document: ApiDocument, answer: Body): readonly string[] {
  return unique(examplesIn(document, answer).map(({ value }) => errorOf(value) ?? ''))
}

function examplesIn(document: ApiDocument, { content = {} }: Body): readonly Example[] {
  return Object.values(content).flatMap((media) => examplesOf(document, media))
}

/** The fields and headers of all error answers, each once. */
export function errorParts(document: ApiDocument): {
  readonly fields: readonly Field[]
  readonly headers: readonly Field[]
} {
  const fields = new Map<string, Field>()
  const headers = new Map<string, Field>()
  for (const { status, answer } of answersOf(document)) {
    if (Number(status) < 400) continue
    for (const { schema = {} } of Object.values(answer.content ?? {})) {
      for (const field of fieldsOf(document, schema)) if (!fields.has(field.path)) fields.set(field.path, field)
    }
    for (const field of headerFields(document, answer)) {
      if (!headers.has(field.path)) headers.set(field.path, { ...field, required: false })
    }
  }
  return { fields: [...fields.values()], headers: [...headers.values()] }
}

/** All answers of all operations. */
function answersOf(document: ApiDocument): readonly { readonly status: string; readonly answer: Body }[] {
  return operationsOf(document).flatMap(({ operation }) =>
    Object.entries(operation.responses ?? {}).map(([status, one]) => ({ status, answer: resolve(document, one) })),
  )
}

export function headerFields(document: ApiDocument, answer: Body): readonly Field[] {
  return Object.entries(answer.headers ?? {}).map(([name, header]) =>
    namedField(document, name, resolve(document, header)),
  )
}

/** A parameter or a header as a field; `place` is the prefix of its type. */
export function namedField(document: ApiDocument, path: string, parameter: Parameter, place = ''): Field {
  const { description = '', required = false, schema = {} } = parameter
  return { path, type: place + typeOf(document, schema), required, description }
}

export interface ErrorCodeRow {
  readonly code: string
  readonly status: string
  readonly retryable: boolean
  readonly when: string
  readonly whatToDo: string
}

/** All error codes by status, each described by its first example. */
export function errorCodes(document: ApiDocument): readonly ErrorCodeRow[] {
  const rows = new Map<string, ErrorCodeRow>()
  for (const { status, answer } of answersOf(document)) {
    for (const example of examplesIn(document, answer)) {
      const row = errorRow(status, example)
      if (row && !rows.has(row.code)) rows.set(row.code, row)
    }
  }
  return [...rows.values()].sort((a, b) => Number(a.status) - Number(b.status))
}

function errorRow(status: string, example: Example): ErrorCodeRow | null {
  const code = errorOf(example.value)
  if (code === null) return null
  const { message = example.description ?? '', retryable = false } = example.value as {
    readonly message?: string
    readonly retryable?: boolean
  }
  return { code, status, retryable, when: example.summary ?? '', whatToDo: message }
}

function errorOf(value: unknown): string | null {
  const isError = typeof value === 'object' && value !== null && 'error' in value
  return isError && typeof value.error === 'string' ? value.error : null
}

function unique(texts: readonly string[]): readonly string[] {
  return [...new Set(texts)].filter((text) => text !== '')
}
