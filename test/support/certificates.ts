// Certificates for 127.0.0.1 and localhost, made by openssl while the test runs.

import { execFileSync } from 'node:child_process'
import { X509Certificate } from 'node:crypto'
import { readFileSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { hasProgram } from '../../prove/debian.ts'
import { tempFolder } from './temp.ts'

/** For `skip`. */
export const noOpenssl = hasProgram('openssl') ? false : 'openssl is not installed (Debian: openssl)'

export interface TestCertificate {
  readonly cert: string
  readonly key: string
  readonly fingerprint: string
}

/** None without openssl: then the tests that need them are skipped. */
export function makeCertificates(count: number): TestCertificate[] {
  return noOpenssl ? [] : Array.from({ length: count }, () => makeCertificate())
}

/** Self-signed, so that it is its own authority. */
export function makeCertificate(days = 2): TestCertificate {
  const folder = tempFolder('certificate')
  const [keyFile, certFile] = [join(folder, 'key.pem'), join(folder, 'cert.pem')]
  const curve = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes']
  const names = ['-subj', '/CN=localhost', '-addext', 'subjectAltName=DNS:localhost,IP:127.0.0.1']
  const files = ['-keyout', keyFile, '-out', certFile]
  execFileSync('openssl', ['req', '-x509', '-days', String(days), ...curve, ...names, ...files], { stdio: 'pipe' })
  const cert = readFileSync(certFile, 'utf8')
  return { cert, key: readFileSync(keyFile, 'utf8'), fingerprint: new X509Certificate(cert).fingerprint256 }
}

export interface PairFiles {
  readonly cert: string
  readonly key: string
}

/** Writes the pair, each file by one rename, as programs that renew certificates do. */
export function installPair({ cert, key }: PairFiles, pair: Pick<TestCertificate, 'cert' | 'key'>): void {
  for (const [file, text] of [
    [cert, pair.cert],
    [key, pair.key],
  ] as const) {
    writeFileSync(`${file}.new`, text, { mode: 0o600 })
    renameSync(`${file}.new`, file)
  }
}

export function newPairFiles(pair: Pick<TestCertificate, 'cert' | 'key'>): PairFiles {
  const folder = tempFolder('tls')
  const files = { cert: join(folder, 'fullchain.pem'), key: join(folder, 'privkey.pem') }
  installPair(files, pair)
  return files
}
