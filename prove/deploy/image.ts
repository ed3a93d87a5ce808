// `prove image`: builds the image without a daemon, from Debian's packages alone unless told otherwise, and runs it as the
// compose files do. A cycle is a SIGKILL of the container under load, and a new container on its volume.
// Claim: nothing acknowledged is lost; the image is small, its user is not root, it has nothing of the tests, its health check
// works, the console is in it, and it stops with 0. Control: a container without a volume must be found to lose its messages.

import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import net, { type AddressInfo } from 'node:net'
import { check, type Findings } from '../check.ts'
import { hasProgram, requirePackages, requireRoot } from '../debian.ts'
import { Inbox } from '../inbox.ts'
import { Journal } from '../journal.ts'
import { Load } from '../load.ts'
import type { ControlResult, Proof, ProofContext } from '../proof.ts'
import { brokenIn } from '../subject.ts'
import { waitFor } from '../wait.ts'
import { baseImage, buildImage, type Built, builderImage } from './build.ts'
import { Container, Images } from './container.ts'

const PACKAGES = ['buildah', 'podman', 'runc', 'mmdebstrap']
const MAX_BYTES = 250_000_000
const ACKNOWLEDGEMENTS = 100
const IDLE_MS = 5000
/** What a build of the sources needs and the service does not. */
const NOT_IN_IT = [
  ...['typescript', 'vite', 'react-dom', 'playwright-core', 'intray-test-node-20'].map(
    (name) => `node_modules/${name}`,
  ),
  ...['test', 'bench', 'prove', 'src'].map((name) => `intray/${name}`),
]

export const image: Proof = {
  name: 'image',
  about: 'the container image is built and run; its container is killed under load, and a new one takes its volume',
  needs: `root, Debian’s ${PACKAGES.join(', ')}, and npm’s registry`,
  stores: ['sqlite'],
  defaultCycles: 5,
  options: {
    builder: 'an image with npm, such as node:26-trixie-slim; otherwise one is made of Debian’s packages',
    base: 'an image that it runs on, such as debian:trixie-slim; likewise',
    images: 'a folder that keeps images for the next run',
  },
  async run(context) {
    requireRoot('prove image', 'to make a Debian and to run containers')
    const isThere = () => PACKAGES.every(hasProgram)
    requirePackages({ proof: 'prove image', packages: PACKAGES, isThere }, context.progress)
    const { given, folder, progress } = context
    const images = new Images(given.images ?? join(folder, 'images'))
    const built = await buildImage(images, {
      builder: given.builder ?? (await builderImage(images, folder, progress)),
      base: given.base ?? (await baseImage(images, folder, progress)),
      source: fileURLToPath(new URL('../..', import.meta.url)),
      progress,
    })
    const run = await killUnderLoad(context, images, built.name)
    const control = await withoutVolume(context, images, built.name)
    const { findings, startsMs } = run
    return {
      counts: { ...findings.counts, faults: context.cycles },
      notes: [
        ...sizeNotes(built),
        ...run.notes,
        `From podman run to the first answer: ${startsMs.map(Math.round).join(', ')} ms.`,
      ],
      broken: [...brokenIn(findings), ...built.broken(MAX_BYTES, NOT_IN_IT), ...run.broken],
      controls: [control],
    }
  },
}

function sizeNotes({ bytes, baseBytes }: Built): string[] {
  const mb = (size: number) => (size / 1_000_000).toFixed(0)
  return [`The image has ${mb(bytes)} MB, ${mb(baseBytes)} of them Debian.`]
}

interface Killed {
  readonly findings: Findings
  readonly startsMs: readonly number[]
  readonly notes: readonly string[]
  readonly broken: readonly string[]
}

async function killUnderLoad(context: ProofContext, images: Images, image: string): Promise<Killed> {
  const volume = 'intray-prove'
  const container = await newContainer(context, images, { image, name: 'intray-prove', volume })
  const startsMs = [await container.start()]
  const broken = await looks(container)
  await new Promise((resolve) => setTimeout(resolve, IDLE_MS))
  const { uid, memoryBytes } = await container.status()
  if (uid === 0) broken.push('the service runs as root')
  const { load, inbox, journal } = await client(context, container, 'image')
  for (let cycle = 0; cycle < context.cycles; cycle += 1) {
    const goal = load.acknowledged + ACKNOWLEDGEMENTS
    const running = load.run()
    await waitFor('messages to be acknowledged', () => load.acknowledged >= goal)
    await container.kill()
    await running
    startsMs.push(await container.start())
    await load.settle()
    context.progress(`${cycle + 1} times killed, ${load.acknowledged} acknowledged`)
  }
  const findings = await check(journal.path, inbox)
  const code = await container.stop()
  if (code !== 0) broken.push(`podman stop ended it with ${code}`)
  return {
    findings,
    startsMs,
    broken,
    notes: [
      `Idle, it has ${(memoryBytes / 1_000_000).toFixed(0)} MB of memory (resident), as the user ${uid}.`,
      'It ran with a read-only root, without capabilities and without new privileges.',
    ],
  }
}

/** What a user finds wrong by looking. */
async function looks(container: Container): Promise<string[]> {
  const broken: string[] = []
  const page = await fetch(`http://127.0.0.1:${container.port}/console`)
  if (page.status !== 200 || !(await page.text()).includes('<script')) broken.push('the console is not in the image')
  if ((await container.health()) !== 0) broken.push('the health check fails while the service answers')
  const nobody = await container.exec('env', 'INTRAY_PORT=1', 'node', '/opt/intray/health.mjs')
  if (nobody.code !== 1) broken.push('the health check holds where nobody listens')
  const written = await container.exec('touch', '/opt/intray/x')
  if (written.code === 0) broken.push('the program can be written to')
  return broken
}

/** The same kill, without what keeps the data. */
async function withoutVolume(context: ProofContext, images: Images, image: string): Promise<ControlResult> {
  const container = await newContainer(context, images, { image, name: 'intray-prove-control', volume: null })
  await container.start()
  const { load, journal } = await client(context, container, 'control')
  await load.run(ACKNOWLEDGEMENTS)
  const { acknowledged } = load
  await container.kill()
  await container.start()
  const inbox = new Inbox(() => container.port, await container.mint('processor'))
  context.onCleanup(() => inbox.close())
  const { counts } = await check(journal.path, inbox)
  await container.stop()
  return {
    about: 'a container without a volume',
    failed: counts.lost > 0,
    detail: `${counts.lost} of ${acknowledged} lost`,
  }
}

async function newContainer(
  context: ProofContext,
  images: Images,
  options: { readonly image: string; readonly name: string; readonly volume: string | null },
): Promise<Container> {
  const container = new Container(images, { ...options, port: await freePort() })
  const clean = async () => {
    await container.remove()
    if (options.volume !== null) await images.podman('volume', 'rm', '--force', options.volume)
  }
  await clean()
  context.onCleanup(clean)
  return container
}

async function client(context: ProofContext, container: Container, name: string) {
  const token = await container.mint('cf')
  const inbox = new Inbox(() => container.port, await container.mint('processor'))
  const journal = new Journal(join(context.folder, `${name}.journal`))
  const random = context.random.fork(name)
  const load = new Load({ journal, token, random, name, connections: 12, port: () => container.port, onTrouble: 'end' })
  context.onCleanup(() => {
    load.close()
    inbox.close()
  })
  return { load, inbox, journal }
}

async function freePort(): Promise<number> {
  const server = net.createServer()
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  await new Promise((resolve) => server.close(resolve))
  return port
}
