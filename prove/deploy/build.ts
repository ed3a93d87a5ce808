// Builds deploy/container/Containerfile with buildah. Where no registry of images is reached, the two images that it begins with are
// made of Debian's packages: one to run on, and one with npm to build in.

import { execFile } from 'node:child_process'
import { existsSync, realpathSync } from 'node:fs'
import { homedir } from 'node:os'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { Unable } from '../proof.ts'
import { type Images, must, ULIMITS } from './container.ts'

const SUITE = 'trixie'
const MIRROR = 'http://deb.debian.org/debian'
const NAME = 'localhost/intray'
const DEBIAN_LIMIT_MS = 1_200_000
/** As the slim images of Debian are made. */
const SLIM = ['man', 'doc', 'locale', 'info'].map((folder) => `--dpkgopt=path-exclude=/usr/share/${folder}/*`)
/** Certificates and packages of this machine, which a build may need to reach npm's registry. */
const CERTIFICATES = '/etc/ssl/certs'

type Progress = (line: string) => void

export const baseImage = (images: Images, folder: string, progress: Progress) =>
  debian(images, { name: 'intray-debian', folder, progress, options: ['--variant=minbase', ...SLIM] })

/** With the Node of this checkout and the npm of this machine: that of Debian 13 is too old. */
export function builderImage(images: Images, folder: string, progress: Progress): Promise<string> {
  const cli = process.env.npm_execpath
  if (cli === undefined)
    throw new Unable('prove image copies npm from this machine: start it with npm run prove -- image')
  const npm = dirname(dirname(realpathSync(cli)))
  const hooks = [
    `copy-in ${process.execPath} /usr/local/bin`,
    `copy-in ${npm} /usr/local/lib`,
    'ln -s ../lib/npm/bin/npm-cli.js "$1/usr/local/bin/npm"',
  ].map((hook) => `--customize-hook=${hook}`)
  const options = ['--variant=minbase', '--include=binutils,ca-certificates,libatomic1', ...hooks]
  return debian(images, { name: 'intray-debian-npm', folder, progress, options })
}

interface DebianOptions {
  readonly name: string
  readonly folder: string
  readonly options: readonly string[]
  readonly progress: Progress
}

async function debian(images: Images, { name, folder, options, progress }: DebianOptions): Promise<string> {
  const image = `localhost/${name}:${SUITE}`
  if ((await images.podman('image', 'exists', image)).code === 0) return image
  progress(`making a Debian: ${image}`)
  const file = join(folder, `${name}.tar`)
  await promisify(execFile)('mmdebstrap', [...options, SUITE, file, MIRROR], { timeout: DEBIAN_LIMIT_MS })
  must(await images.podman('import', file, image), 'podman import')
  return image
}

export interface BuildOptions {
  readonly builder: string
  readonly base: string
  readonly source: string
  readonly progress: Progress
}

export interface Built {
  readonly name: string
  readonly bytes: number
  readonly baseBytes: number
  /** What is wrong with it, as it is stored. */
  broken(maxBytes: number, notInIt: readonly string[]): string[]
}

export async function buildImage(images: Images, { builder, base, source, progress }: BuildOptions): Promise<Built> {
  progress(`building the image in ${builder}, on ${base}`)
  const mounts = [CERTIFICATES, join(homedir(), '.npm')].filter(existsSync)
  const given = ['--build-arg', `BUILDER=${builder}`, '--build-arg', `BASE=${base}`]
  const authority = process.env.NODE_EXTRA_CA_CERTS
  const machine = [
    ...mounts.flatMap((path) => ['--volume', `${path}:${path}`]),
    ...(authority === undefined ? [] : ['--build-arg', `NODE_EXTRA_CA_CERTS=${authority}`]),
  ]
  const file = join(source, 'deploy/container/Containerfile')
  // The format of OCI has no health checks.
  const how = ['bud', '--isolation', 'chroot', '--format', 'docker', '--layers']
  must(await images.buildah(...how, ...given, ...machine, '--file', file, '--tag', NAME, source), 'buildah bud')

  const size = async (name: string) => Number(must(await inspect(images, name, '{{.Size}}'), 'podman inspect'))
  const user = must(await inspect(images, NAME, '{{.Config.User}}'), 'podman inspect')
  const health = must(await inspect(images, NAME, '{{.HealthCheck}}'), 'podman inspect')
  const [bytes, baseBytes, paths] = [await size(NAME), await size(base), await pathsIn(images)]
  return {
    name: NAME,
    bytes,
    baseBytes,
    broken: (maxBytes, notInIt) => [
      ...(bytes < maxBytes ? [] : [`the image has ${bytes} bytes, more than ${maxBytes}`]),
      ...(/^[1-9]\d*:[1-9]\d*$/.test(user) ? [] : [`the user of the image is ${user}`]),
      ...(health.includes('health.mjs') ? [] : ['the image has no health check']),
      ...(endIn(paths, 'intray/dist') ? [] : ['the program is not where it was looked for']),
      ...notInIt.filter((path) => endIn(paths, path)).map((path) => `${path} is in the image`),
    ],
  }
}

const inspect = (images: Images, name: string, format: string) =>
  images.podman('image', 'inspect', '--format', format, name)

const endIn = (paths: readonly string[], end: string) => paths.some((path) => path.endsWith(`/${end}`))

/** The folders of the program. */
async function pathsIn(images: Images): Promise<string[]> {
  const how = ['--rm', '--network', 'none', ...ULIMITS, '--entrypoint', 'find']
  const said = await images.podman('run', ...how, NAME, '/opt/intray', '-type', 'd')
  return must(said, 'find').split('\n')
}
