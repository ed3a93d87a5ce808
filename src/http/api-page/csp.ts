// The Content-Security-Policy of the page: its own style alone.

import { createHash } from 'node:crypto'
import { API_PAGE_STYLE } from './style.ts'

const STYLE_HASH = createHash('sha256').update(API_PAGE_STYLE).digest('base64')

export const API_PAGE_CSP = `default-src 'none'; style-src 'sha256-${STYLE_HASH}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`
