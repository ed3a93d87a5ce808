// Serves the console's build, console/dist, from memory, with a Content-Security-Policy for its own files alone. A path under
// /console without a file extension gets index.html; without a build, a plain page explains how to build.

import { existsSync, readdirSync, readFileSync } from 'node:fs'
import type { IncomingMessage } from 'node:http'
import { extname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { gzipSync } from 'node:zlib'
import type { Problem } from '../model/errors.ts'
import type { Answer } from './problem.ts'

const DIST = fileURLToPath(new URL('../../console/dist/', import.meta.url))
const INDEX = 'index.html'
const COMPRESS_FROM_BYTES = 1024

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

interface File {
  readonly headers: Readonly<Record<string, string>>
  readonly bytes: Buffer
  readonly gzipped: Buffer | null
}

export interface ConsoleFiles {
  page(req: IncomingMessage): Answer
  /** `path` is relative to /console/. */
  file(req: IncomingMessage, path: string): Answer | Problem
}

export function createConsoleFiles(folder = DIST): ConsoleFiles {
  let files: ReadonlyMap<string, File> | null = null
  /** Checks again while there is no build. */
  const load = () => {
    if (!files && existsSync(join(folder, INDEX))) files = readFiles(folder)
    return files
  }
  const page = (req: IncomingMessage): Answer => {
    const index = load()?.get(INDEX)
    if (index) return answerOf(req, index)
    return { status: 200, headers: { ...HEADERS, 'Content-Type': TYPES['.html']!, ...noCache() }, body: NOT_BUILT }
  }
  return {
    page,
    file: (req, path) => {
      const found = load()?.get(path)
      if (found) return answerOf(req, found)
      return extname(path) === '' ? page(req) : { code: 'not_found' }
    },
  }
}

/** By name: no text of a request becomes a path of the file system. */
function readFiles(folder: string): Map<string, File> {
  const files = new Map<string, File>()
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
function fileOf(name: string, type: string, bytes: Buffer): File {
  const isText = !/^(image\/(png|x-icon)|font\/)/.test(type)
  const isHashed = name.startsWith('assets/')
  return {
    headers: {
      ...HEADERS,
      'Content-Type': type,
      ...(isHashed ? { 'Cache-Control': 'public, max-age=31536000, immutable' } : noCache()),
      ...(isText ? { Vary: 'Accept-Encoding' } : {}),
    },
    bytes,
    gzipped: isText && bytes.length >= COMPRESS_FROM_BYTES ? gzipSync(bytes, { level: 9 }) : null,
  }
}

function noCache() {
  return { 'Cache-Control': 'no-cache' }
}

function answerOf(req: IncomingMessage, { headers, bytes, gzipped }: File): Answer {
  const takesGzip = /(^|,)\s*gzip\s*(;\s*q=(?!0(\.0*)?\s*(,|$))|,|$)/i.test(
    String(req.headers['accept-encoding'] ?? ''),
  )
  if (!gzipped || !takesGzip) return { status: 200, headers, body: bytes }
  return { status: 200, headers: { ...headers, 'Content-Encoding': 'gzip' }, body: gzipped }
}
