// Writes src/schema.ts from api/openapi.yaml: a type for each schema and, for each operation under /v1/, what it takes and
// what it answers. `npm run api -w @intray/client` writes it; a test compares it with what would be written.

import { readFileSync, writeFileSync } from 'node:fs'
import { parse } from 'yaml'

type Json = { readonly [key: string]: unknown }

const HEAD = `// Made from api/openapi.yaml by scripts/api-types.ts (\`npm run api -w @intray/client\`). Not edited by hand.
`

export function apiTypes(document: Json): string {
  const at = (reference: string) =>
    reference
      .slice(2)
      .split('/')
      .reduce<unknown>((value, key) => (value as Json)[key], document) as Json
  const deref = (value: unknown): Json => {
    const object = (value ?? {}) as Json
    return typeof object.$ref === 'string' ? deref(at(object.$ref)) : object
  }
  // The stream's answer is text: what its blocks hold is named here.
  const used = new Set<string>(['FollowedEvent'])
  const operations: string[] = []
  for (const [path, methods] of Object.entries(document.paths as Json)) {
    if (!path.startsWith('/v1/')) continue
    for (const [method, operation] of Object.entries(methods as Json)) {
      operations.push(operationType(`${method.toUpperCase()} ${path}`, operation as Json, deref, used))
    }
  }
  const schemas = (document.components as { schemas: Json }).schemas
  const written = new Map<string, string>()
  // What is used may use more.
  for (const name of used) {
    if (!written.has(name)) written.set(name, `export type ${name} = ${typeOf(schemas[name] as Json, used, '')}\n`)
  }
  const types = [...written].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, text]) => text)
  return `${HEAD}\n${types.join('\n')}\nexport interface Operations {\n${operations.join('')}}\n`
}

function operationType(name: string, operation: Json, deref: (value: unknown) => Json, used: Set<string>): string {
  const query: string[] = []
  for (const given of (operation.parameters ?? []) as unknown[]) {
    const parameter = deref(given)
    if (parameter.in !== 'query') continue
    query.push(`${key(String(parameter.name))}?: ${typeOf(parameter.schema as Json, used, '    ')}`)
  }
  const bodySchema = jsonSchema(deref(operation.requestBody))
  const ok = deref((operation.responses as Json)['200'] ?? (operation.responses as Json)['204'])
  const answer = jsonSchema(ok)
  return [
    `  '${name}': {\n`,
    `    query: {${query.length === 0 ? '' : ` ${query.join('; ')} `}}\n`,
    `    body: ${bodySchema ? typeOf(bodySchema, used, '    ') : 'undefined'}\n`,
    `    answer: ${answer ? typeOf(answer, used, '    ') : 'undefined'}\n  }\n`,
  ].join('')
}

function jsonSchema(holder: Json): Json | null {
  const content = holder.content as Json | undefined
  const media = content?.['application/json'] as Json | undefined
  return (media?.schema as Json | undefined) ?? null
}

function typeOf(schema: Json | undefined, used: Set<string>, indent: string): string {
  if (!schema) return 'unknown'
  if (typeof schema.$ref === 'string') {
    const name = schema.$ref.split('/').at(-1)!
    used.add(name)
    return name
  }
  if ('const' in schema) return JSON.stringify(schema.const)
  if (Array.isArray(schema.enum)) return schema.enum.map((value) => JSON.stringify(value)).join(' | ')
  for (const kind of ['oneOf', 'anyOf'] as const) {
    if (Array.isArray(schema[kind])) return schema[kind].map((one) => typeOf(one as Json, used, indent)).join(' | ')
  }
  if (Array.isArray(schema.allOf)) return schema.allOf.map((one) => typeOf(one as Json, used, indent)).join(' & ')
  const kinds = Array.isArray(schema.type) ? (schema.type as string[]) : [String(schema.type)]
  return kinds.map((kind) => simpleType(kind, schema, used, indent)).join(' | ')
}

function simpleType(kind: string, schema: Json, used: Set<string>, indent: string): string {
  if (kind === 'integer' || kind === 'number') return 'number'
  if (kind === 'string' || kind === 'boolean' || kind === 'null') return kind
  if (kind === 'array') return `readonly (${typeOf(schema.items as Json, used, indent)})[]`
  if (kind !== 'object') return 'unknown'
  const required = new Set((schema.required ?? []) as string[])
  const fields = Object.entries((schema.properties ?? {}) as Json).map(
    ([name, field]) =>
      `${indent}  readonly ${key(name)}${required.has(name) ? '' : '?'}: ${typeOf(field as Json, used, `${indent}  `)}\n`,
  )
  if (fields.length > 0) return `{\n${fields.join('')}${indent}}`
  const values = schema.additionalProperties
  return `Readonly<Record<string, ${typeof values === 'object' ? typeOf(values as Json, used, indent) : 'unknown'}>>`
}

function key(name: string): string {
  return /^[a-zA-Z_]\w*$/.test(name) ? name : `'${name}'`
}

export const CONTRACT = new URL('../../../api/openapi.yaml', import.meta.url)
export const SCHEMA_FILE = new URL('../src/schema.ts', import.meta.url)

if (import.meta.main) {
  writeFileSync(SCHEMA_FILE, apiTypes(parse(readFileSync(CONTRACT, 'utf8')) as Json))
}
