// Example requests for the page at /docs, generated from the OpenAPI document for curl, PHP and Python. They use standard
// libraries only and read the token from the environment variable TOKEN.

import { type ApiDocument, examplesOf, type NamedOperation, resolve } from './document.ts'

export const LANGUAGES = ['curl', 'PHP', 'Python'] as const
export type Language = (typeof LANGUAGES)[number]

interface ExampleCall {
  readonly method: string
  readonly url: string
  /** Undefined: the call has no body. */
  readonly body: unknown
  /** The answer does not end. */
  readonly isStream: boolean
}

const PATH_PARAMETERS: Readonly<Record<string, string>> = { id: '4711', name: 'crm' }

/** Null for a call that takes no token: it is not for scripts. */
export function exampleRequests(
  document: ApiDocument,
  named: NamedOperation,
  address: string,
): Readonly<Record<Language, string>> | null {
  const { operation, method, path } = named
  const security = operation.security ?? document.security ?? []
  if (!security.some((requirement) => 'bearer' in requirement)) return null
  const [media] = Object.values(operation.requestBody ? (resolve(document, operation.requestBody).content ?? {}) : {})
  const answers = Object.values(operation.responses ?? {}).map((answer) => resolve(document, answer).content ?? {})
  const call: ExampleCall = {
    method,
    url:
      address +
      path.replaceAll(/\{(\w+)\}/g, (_match, name: string) => PATH_PARAMETERS[name] ?? name) +
      queryOf(document, named),
    body: media ? examplesOf(document, media)[0]?.value : undefined,
    isStream: answers.some((content) => 'text/event-stream' in content),
  }
  return { curl: curlExample(call), PHP: phpExample(call), Python: pythonExample(call) }
}

/** The first query parameter that has an example. */
function queryOf(document: ApiDocument, { operation }: NamedOperation): string {
  const parameters = (operation.parameters ?? []).map((parameter) => resolve(document, parameter))
  const shown = parameters.find((parameter) => parameter.in === 'query' && parameter.example !== undefined)
  return shown ? `?${shown.name}=${encodeURIComponent(String(shown.example))}` : ''
}

function curlExample({ method, url, body, isStream }: ExampleCall): string {
  const usual = body === undefined ? 'GET' : 'POST'
  return [
    `curl -sS${isStream ? 'N' : ''}${method === usual ? '' : ` -X ${method}`} ${shellWord(url)}`,
    `  -H "Authorization: Bearer $TOKEN"`,
    ...(body === undefined ? [] : [`  -H 'Content-Type: application/json'`, `  -d ${shellQuoted(jsonText(body, 0))}`]),
  ].join(' \\\n')
}

/** Quoted only if the shell would not read it as one word. */
function shellWord(text: string): string {
  return /^[\w./:[\]-]+$/.test(text) ? text : shellQuoted(text)
}

function shellQuoted(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`
}

function jsonText(value: unknown, depth: number): string {
  if (Array.isArray(value)) return list(value, depth, JSON_LIST, (one) => jsonText(one, depth + 1))
  if (typeof value !== 'object' || value === null) return JSON.stringify(value)
  const pair = ([name, one]: [string, unknown]) => `${JSON.stringify(name)}: ${jsonText(one, depth + 1)}`
  return list(Object.entries(value), depth, JSON_OBJECT, pair)
}

function phpExample({ method, url, body, isStream }: ExampleCall): string {
  const token = "'Authorization: Bearer ' . getenv('TOKEN')"
  const headers = body === undefined ? `[${token}]` : lines('[', [token, "'Content-Type: application/json'"], ']')
  const options = [
    ...(method === 'GET' || body !== undefined ? [] : [`CURLOPT_CUSTOMREQUEST => '${method}',`]),
    `CURLOPT_HTTPHEADER => ${headers},`,
    ...(body === undefined ? [] : [`CURLOPT_POSTFIELDS => json_encode(${phpLiteral(body, 1)}, JSON_THROW_ON_ERROR),`]),
    ...(isStream ? [] : ['CURLOPT_RETURNTRANSFER => true,', 'CURLOPT_TIMEOUT => 30,']),
  ]
  const start = `<?php
$request = curl_init(${phpLiteral(url, 0)});
curl_setopt_array($request, [
${options.map((option) => `    ${option}`).join('\n')}
]);
`
  if (isStream) return `${start}curl_exec($request);`
  return `${start}$answer = curl_exec($request);
if ($answer === false) {
    exit(curl_error($request) . "\\n");
}
echo curl_getinfo($request, CURLINFO_RESPONSE_CODE), ' ', $answer, "\\n";`
}

function phpLiteral(value: unknown, depth: number): string {
  if (typeof value === 'string') return `'${value.replaceAll(/[\\']/g, '\\$&')}'`
  if (Array.isArray(value)) return list(value, depth, PHP_ARRAY, (one) => phpLiteral(one, depth + 1))
  if (typeof value !== 'object' || value === null) return JSON.stringify(value)
  const entries = Object.entries(value)
  if (entries.length === 0) return 'new stdClass()'
  return list(entries, depth, PHP_ARRAY, ([name, one]) => `${phpLiteral(name, 0)} => ${phpLiteral(one, depth + 1)}`)
}

function pythonExample({ method, url, body, isStream }: ExampleCall): string {
  const token = "'Authorization': 'Bearer ' + os.environ['TOKEN']"
  const headers = body === undefined ? `{${token}}` : lines('{', [token, "'Content-Type': 'application/json'"], '}')
  const parameters = [
    `${pythonLiteral(url, 0)},`,
    ...(method === (body === undefined ? 'GET' : 'POST') ? [] : [`method='${method}',`]),
    `headers=${headers},`,
    ...(body === undefined ? [] : [`data=json.dumps(${pythonLiteral(body, 1)}).encode(),`]),
  ]
  const read = isStream
    ? `    for line in answer:
            print(line.decode(), end='')`
    : '    print(answer.status, answer.read().decode())'
  return `import ${body === undefined ? '' : 'json, '}os, urllib.error, urllib.request

request = urllib.request.Request(
${parameters.map((line) => `    ${line}`).join('\n')}
)
try:
    with urllib.request.urlopen(request${isStream ? '' : ', timeout=30'}) as answer:
    ${read}
except urllib.error.HTTPError as error:
    print(error.code, error.read().decode())`
}

function pythonLiteral(value: unknown, depth: number): string {
  if (typeof value === 'string') return `'${value.replaceAll(/[\\']/g, '\\$&')}'`
  if (Array.isArray(value)) return list(value, depth, PYTHON_LIST, (one) => pythonLiteral(one, depth + 1))
  if (value === null) return 'None'
  if (typeof value === 'boolean') return value ? 'True' : 'False'
  if (typeof value !== 'object') return JSON.stringify(value)
  const pair = ([name, one]: [string, unknown]) => `${pythonLiteral(name, 0)}: ${pythonLiteral(one, depth + 1)}`
  return list(Object.entries(value), depth, PYTHON_DICT, pair)
}

/** One entry a line, one level deep. */
function lines(open: string, entries: readonly string[], close: string): string {
  return `${open}\n${entries.map((one) => `        ${one},\n`).join('')}    ${close}`
}

interface ListStyle {
  readonly open: string
  readonly close: string
  readonly indent: string
  /** After the last entry of a multi-line list. */
  readonly lastComma: ',' | ''
}

const JSON_LIST: ListStyle = { open: '[', close: ']', indent: '  ', lastComma: '' }
const JSON_OBJECT: ListStyle = { ...JSON_LIST, open: '{', close: '}' }
const PHP_ARRAY: ListStyle = { open: '[', close: ']', indent: '    ', lastComma: ',' }
const PYTHON_LIST = PHP_ARRAY
const PYTHON_DICT: ListStyle = { ...PHP_ARRAY, open: '{', close: '}' }

/** Longer lists have one entry a line. */
const MAX_INLINE = 66

function list<T>(entries: readonly T[], depth: number, style: ListStyle, text: (one: T) => string): string {
  const { open, close, indent, lastComma } = style
  const texts = entries.map(text)
  const inline = `${open}${texts.join(', ')}${close}`
  if (inline.length <= MAX_INLINE && !inline.includes('\n')) return inline
  const margin = indent.repeat(depth)
  const lines = texts.map((one) => `${margin}${indent}${one}`)
  return `${open}\n${lines.join(',\n')}${lastComma}\n${margin}${close}`
}
