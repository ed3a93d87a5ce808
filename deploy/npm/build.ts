// Builds dist/, which the npm package runs in place of src/: Node strips no types under node_modules. It is a copy of the tree with
// the same paths, so that files find each other as they do in a checkout. Types are stripped by the Node that runs a checkout,
// which keeps every line where it is.

import { cpSync, globSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { stripTypeScriptTypes } from 'node:module'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const ROOT = fileURLToPath(new URL('../../', import.meta.url))
const DIST = join(ROOT, 'dist')

/** `./intray send` uses the client of senders. */
const COMPILED = '{src,kits/typescript/src}/**/*.ts'
const COPIED = ['src/**/*.sql', 'api/openapi.yaml', 'console/dist']

/** Of imports, and of the URLs that threads are started by. */
const FILE_NAME = /(\bfrom |\bimport |\bimport\(|new URL\()(['"`])([^'"`\n]+)\.ts\2/g
/** In texts: an installed command is on the path. */
const LAUNCHER = /(?<!\.)\.\/intray(?![\w.-])/g

function compiled(path: string): string {
  return stripTypeScriptTypes(readFileSync(join(ROOT, path), 'utf8'))
    .replace(FILE_NAME, '$1$2$3.js$2')
    .replace(LAUNCHER, 'intray')
}

function write(path: string, content: string): void {
  mkdirSync(dirname(join(DIST, path)), { recursive: true })
  writeFileSync(join(DIST, path), content)
}

rmSync(DIST, { recursive: true, force: true })
for (const path of globSync(COMPILED, { cwd: ROOT })) write(path.replace(/\.ts$/, '.js'), compiled(path))
for (const pattern of COPIED) {
  for (const path of globSync(pattern, { cwd: ROOT })) cpSync(join(ROOT, path), join(DIST, path), { recursive: true })
}
const { name, version, type } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'))
write('package.json', `${JSON.stringify({ name, version, type }, null, 2)}\n`)
