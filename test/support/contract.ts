// Holds answers against api/openapi.yaml: an undocumented status, header requirement or field is a failure.

import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { Ajv2020 } from 'ajv/dist/2020.js'
import { parse } from 'yaml'
import type { TestAnswer } from './client.ts'

interface Operation {
  readonly responses: Record<string, Response | Reference>
}
interface Response {
  readonly headers?: Record<string, Header | Reference>
  readonly content?: Record<string, { readonly schema?: object }>
}
interface Header {
  readonly required?: boolean
  readonly schema?: object
}
interface Reference {
  readonly $ref: string
}
interface Document {
  readonly paths: Record<string, Record<string, Operation>>
}

export const document = parse(readFileSync(new URL('../../api/openapi.yaml', import.meta.url), 'utf8')) as Document

const ajv = new Ajv2020({ strict: false, validateFormats: false })
ajv.addSchema(document, 'openapi')

/** The answers of addresses that are not in the document: the same for all of them. */
const ANY_PATH_STATUSES = [400, 404, 408, 413, 417, 431]

export function assertDocumented(method: string, path: string, answer: TestAnswer): void {
  const { status, headers, json, text } = answer
  assert.match(String(headers['x-request-id'] ?? ''), /^[0-9a-f-]{36}$/, 'every answer carries X-Request-Id')
  const route = (path.split('?')[0] ?? '').replace(/(?<=.)\/$/, '')
  const operations = document.paths[route] ?? document.paths[templateOf(route) ?? '']
  if (method === 'OPTIONS' && status === 204) {
    assert.ok(headers.allow, 'OPTIONS carries Allow')
    return
  }
  const operation = operations?.[method === 'HEAD' ? 'get' : method.toLowerCase()] ?? Object.values(operations ?? {})[0]
  if (!operation) {
    assert.ok(ANY_PATH_STATUSES.includes(status), `${method} ${path} answered ${status}, which is not documented`)
    return
  }
  const response = resolve(operation.responses[status])
  assert.ok(response, `${method} ${route} answered ${status}, which is not documented: ${text}`)
  for (const [name, header] of Object.entries(response.headers ?? {})) {
    const value = headers[name.toLowerCase()]
    if (resolve(header)?.required)
      assert.ok(value !== undefined, `${method} ${route} ${status} lacks the header ${name}`)
  }
  if (method === 'HEAD' || json === undefined) return
  const schema = response.content?.['application/json']?.schema
  assert.ok(schema, `${method} ${route} ${status} is not documented to have a JSON body`)
  const validate = ajv.compile(withAbsoluteReferences(schema))
  assert.ok(validate(json), `${method} ${route} ${status}: ${ajv.errorsText(validate.errors)} in ${text}`)
}

/** The path with places that an address fits into. */
function templateOf(route: string): string | undefined {
  const parts = route.split('/')
  // The one address whose last place stands for the rest.
  if (route.startsWith('/console/')) return '/console/{path}'
  return Object.keys(document.paths).find((path) => {
    const pattern = path.split('/')
    return pattern.length === parts.length && pattern.every((part, n) => part === parts[n] || part.startsWith('{'))
  })
}

/** Holds a value against a schema of the document. */
export function assertMatches(schema: string, value: unknown): void {
  const validate = ajv.getSchema(`openapi#/components/schemas/${schema}`)!
  assert.ok(validate(value), `${schema}: ${ajv.errorsText(validate.errors)} in ${JSON.stringify(value)}`)
}

function resolve<T extends object>(value: T | Reference | undefined): T | undefined {
  if (value === undefined || !('$ref' in value)) return value as T | undefined
  const path = (value as Reference).$ref.slice(2).split('/')
  return path.reduce<unknown>((at, key) => (at as Record<string, unknown>)[key], document) as T
}

/** `#/components/…` is meant inside the document, not inside the schema that is compiled alone. */
const compiled = new WeakMap<object, object>()
function withAbsoluteReferences(schema: object): object {
  const known = compiled.get(schema)
  if (known) return known
  const text = JSON.stringify(schema).replaceAll('"$ref":"#/', '"$ref":"openapi#/')
  const absolute = JSON.parse(text) as object
  compiled.set(schema, absolute)
  return absolute
}
