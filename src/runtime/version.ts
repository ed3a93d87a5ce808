// The version, from package.json.

import { readFileSync } from 'node:fs'

const FILE = new URL('../../package.json', import.meta.url)

export const VERSION = (JSON.parse(readFileSync(FILE, 'utf8')) as { version: string }).version
