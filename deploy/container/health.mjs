// The health check of the image: 0 if the server in this container answers /livez.

import http from 'node:http'
import https from 'node:https'

const { INTRAY_TLS_CERT, INTRAY_PORT = '8080' } = process.env
// Its certificate names another host than this one.
const options = { host: '127.0.0.1', port: Number(INTRAY_PORT), path: '/livez', rejectUnauthorized: false }
const request = (INTRAY_TLS_CERT ? https : http).get(options, ({ statusCode }) =>
  process.exit(statusCode === 200 ? 0 : 1),
)
request.on('error', () => process.exit(1))
