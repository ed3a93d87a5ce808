// Serves the console's build, console/dist, from memory, with a Content-Security-Policy for its own files alone. A path under
// /console without a file extension gets index.html; without a build, a plain page explains how to build.

import { existsSync, readdirSync, readFileSync } from 'node:fs'
import type { IncomingMessage } from 'node:http'
import { extname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Problem } from '../model/errors.ts'
import type { Answer } from './problem.ts'
import { ReadyAnswer } from './ready-answer.ts'

const DIST = fileURLToPath(new URL('../../console/dist/', import.meta.url))
const INDEX = 'index.html'

const TYPES: Readonly<Record<string, string>> = {
  '.css': 'text/css; charset=utf-8',
  '.html': 'text/html; charset=utf-8',
  '.ico': 'image/x-icon',
  '.js': 'text/javascript; charset=utf-8',
  '.json': 'application/json; charset=utf-8',
  '.map': 'application/json; charset=utf-8',
  '.png': 'image/png',
  '.svg': 'image/svg+xml',
  '.txt': 'text/plain; charset=utf-8',
  '.webmanifest': 'application/manifest+json',
  '.woff2': 'font/woff2',
}

const CSP = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data:",
  "connect-src 'self'",
  "font-src 'self'",
  "form-action 'none'",
  "base-uri 'none'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
].join('; ')

const HEADERS = {
  'Content-Security-Policy': CSP,
  'Cross-Origin-Opener-Policy': 'same-origin',
  'Cross-Origin-Resource-Policy': 'same-origin',
  'Referrer-Policy': 'no-referrer',
  'X-Content-Type-Options': 'nosniff',
}

const NOT_BUILT = `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>Intray console</title>
<h1>The console is not built yet</h1>
<p>A first start builds it in the background: load this page again in a moment. By hand: <code>npm run build:console</code>.</p>
<p>Everything else works without it: the interface is described at <a href="/docs">/docs</a>.</p>
</html>
`

export interface ConsoleFiles {
  page(req: IncomingMessage): Answer | Promise<Answer>
  /** `path` is relative to /console/. */
  file(req: IncomingMessage, path: string): Answer | Problem | Promise<Answer>
}

export function createConsoleFiles(folder = DIST): ConsoleFiles {
  let files: ReadonlyMap<string, ReadyAnswer> | null = null
  /** Checks again while there is no build. */
  const load = () => {
    if (!files && existsSync(join(folder, INDEX))) files = readFiles(folder)
    return files
  }
  const page = (req: IncomingMessage): Answer | Promise<Answer> => {
    const index = load()?.get(INDEX)
    if (index) return index.answer(req)
    return { status: 200, headers: { ...HEADERS, 'Content-Type': TYPES['.html']!, ...noCache() }, body: NOT_BUILT }
  }
  return {
    page,
    file: (req, path) => {
      const found = load()?.get(path)
      if (found) return found.answer(req)
      return extname(path) === '' ? page(req) : { code: 'not_found' }
    },
  }
}

/** By name: no text of a request becomes a path of the file system. */
function readFiles(folder: string): Map<string, ReadyAnswer> {
  const files = new Map<string, ReadyAnswer>()
  for (const entry of readdirSync(folder, { recursive: true, withFileTypes: true })) {
    if (!entry.isFile()) continue
    const path = join(entry.parentPath, entry.name)
    const name = path.slice(join(folder, '/').length).replaceAll('\\', '/')
    const type = TYPES[extname(name)]
    if (type !== undefined) files.set(name, fileOf(name, type, readFileSync(path)))
  }
  return files
}

/** Files in assets/ are named by their hash and never change. */
function fileOf(name: string, type: string, bytes: Buffer): ReadyAnswer {
  const isText = !/^(image\/(png|x-icon)|font\/)/.test(type)
  const isHashed = name.startsWith('assets/')
  const headers = {
    ...HEADERS,
    'Content-Type': type,
    ...(isHashed ? { 'Cache-Control': 'public, max-age=31536000, immutable' } : noCache()),
    ...(isText ? { Vary: 'Accept-Encoding' } : {}),
  }
  return new ReadyAnswer(headers, bytes)
}

function noCache() {
  return { 'Cache-Control': 'no-cache' }
}
