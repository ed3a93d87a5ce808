// Loaded before an example: its '@intray/client' is the client of this checkout, without a build.

import { registerHooks } from 'node:module'

const CLIENT = new URL('../../../kits/typescript/src/intray.ts', import.meta.url).href

registerHooks({
  resolve: (specifier, context, next) => next(specifier === '@intray/client' ? CLIENT : specifier, context),
})
