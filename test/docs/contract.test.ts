// api/openapi.yaml is the route table and the error catalogue, told to outsiders: neither knows anything that the other
// does not.

import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { renderProblem, statusOf } from '../../src/http/problem.ts'
import { ROUTES } from '../../src/http/routes.ts'
import { VERSION } from '../../src/runtime/version.ts'
import { ERRORS, type ErrorCode, type FieldProblem } from '../../src/model/errors.ts'
import { document } from '../support/contract.ts'

interface Operation {
  readonly operationId: string
  readonly security?: readonly Record<string, readonly string[]>[]
  readonly responses: Record<string, { readonly $ref?: string }>
}

interface Example {
  readonly value: {
    readonly error: ErrorCode
    readonly request_id?: string
    readonly fields?: readonly FieldProblem[]
    readonly max_bytes?: number
  }
  readonly description?: string
}

interface Schema {
  readonly properties?: {
    readonly error?: { readonly enum?: readonly ErrorCode[] }
    readonly retryable?: { readonly $ref?: string }
  }
  readonly oneOf?: readonly { readonly $ref: string }[]
}

interface Response {
  readonly content?: Record<string, { readonly schema?: { readonly $ref?: string } }>
}

const contract = document as unknown as {
  readonly info: { readonly version: string }
  readonly paths: Record<string, Record<string, Operation>>
  readonly security: readonly Record<string, readonly string[]>[]
  readonly components: {
    readonly examples: Record<string, Example>
    readonly schemas: Record<string, Schema>
    readonly responses: Record<string, Response>
  }
}

const operations = Object.entries(contract.paths).flatMap(([path, methods]) =>
  Object.entries(methods).map(([method, operation]) => ({ path, method: method.toUpperCase(), operation })),
)

const nameOf = (reference: string) => reference.split('/').at(-1)!

/** The codes that an answer of this description may have. */
function codesOf(response: Response): ErrorCode[] {
  const reference = response.content?.['application/json']?.schema?.$ref
  if (!reference) return []
  const schema = contract.components.schemas[nameOf(reference)]!
  const schemas = schema.oneOf?.map(({ $ref }) => contract.components.schemas[nameOf($ref)]!) ?? [schema]
  return schemas.flatMap((one) => one.properties?.error?.enum ?? [])
}

test('it has the version of the program', () => {
  assert.equal(contract.info.version, VERSION)
})

describe('the contract', () => {
  test('has every route of the table, and the table every operation of it', () => {
    const told = operations.map(({ method, path }) => `${method} ${path}`)
    const served = ROUTES.map(({ method, path }) => `${method} ${path}`)
    assert.deepEqual(told.toSorted(), served.toSorted())
  })

  test('asks for a token where the table does', () => {
    assert.deepEqual(contract.security, [{ bearer: [] }])
    for (const { path, method, operation } of operations) {
      const route = ROUTES.find((one) => one.path === path && one.method === method)
      assert.equal(operation.security?.length === 0, route?.scope === 'public', `${method} ${path}`)
      const ways: string[] = (operation.security ?? contract.security).flatMap((one) => Object.keys(one))
      assert.equal(ways.includes('session'), route?.operator !== 'none', `${method} ${path}`)
      const takesToken = route?.scope !== 'public' && route?.scope !== 'operator'
      assert.equal(ways.includes('bearer'), takesToken, `${method} ${path}`)
    }
  })

  test('has no two operations with one name', () => {
    assert.equal(new Set(operations.map(({ operation }) => operation.operationId)).size, operations.length)
  })

  test('describes the alias with the very same answers', () => {
    assert.deepEqual(contract.paths['/api/inbox']?.post?.responses, contract.paths['/v1/inbox/events']?.post?.responses)
  })

  test('has an example for every error of the catalogue, in its words', () => {
    const examples = new Map(Object.values(contract.components.examples).map((one) => [one.value.error, one]))
    assert.deepEqual([...examples.keys()].toSorted(), Object.keys(ERRORS).toSorted())
    for (const [code, { value, description }] of examples) {
      const { request_id: requestId = '', fields, max_bytes: maxBytes } = value
      const problem = { code, ...(fields ? { fields } : {}), ...(maxBytes === undefined ? {} : { maxBytes }) }
      assert.deepEqual(value, JSON.parse(renderProblem(problem, requestId).body), code)
      // The body of this one is fixed by the interface; its sentence stands beside it.
      if (code === 'forbidden_scope') assert.equal(description, ERRORS[code].message)
    }
  })

  test('lists each error under the status that the code gives it, and leaves none out', () => {
    const listed = new Set<string>()
    for (const { path, method, operation } of operations) {
      for (const [status, { $ref }] of Object.entries(operation.responses)) {
        if (!$ref) continue
        for (const code of codesOf(contract.components.responses[nameOf($ref)]!)) {
          assert.equal(statusOf({ code }), Number(status), `${method} ${path}: ${code}`)
          listed.add(code)
        }
      }
    }
    assert.deepEqual([...listed].toSorted(), Object.keys(ERRORS).toSorted())
  })

  test('says of each error whether to send again as the catalogue does', () => {
    for (const [name, schema] of Object.entries(contract.components.schemas)) {
      const reference = schema.properties?.retryable?.$ref
      for (const code of schema.properties?.error?.enum ?? []) {
        if (code === 'forbidden_scope') continue
        assert.equal(nameOf(reference ?? ''), ERRORS[code].retryable ? 'Retryable' : 'NotRetryable', `${name}: ${code}`)
      }
    }
  })
})
