// How the console is built. Promises what the strict Content-Security-Policy asks for: nothing inline, nothing from another
// host, every asset a file of its own under /console/.

import { defineConfig } from 'vite'

export default defineConfig({
  base: '/console/',
  root: import.meta.dirname,
  build: {
    outDir: 'dist',
    emptyOutDir: true,
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    sourcemap: false,
    target: 'baseline-widely-available',
    rolldownOptions: {
      // Libraries mark their modules for servers that render; nothing is rendered on a server here.
      checks: { moduleLevelDirective: false },
    },
  },
  // While developing: the pages from here, the API from a running server.
  server: {
    host: '127.0.0.1',
    proxy: { '/v1': { target: process.env.INTRAY_URL ?? 'http://127.0.0.1:8080', changeOrigin: false } },
  },
})
