// Intray in a container that podman runs without a daemon, as the manifests and compose files do: read-only root, no capabilities,
// no new privileges. It uses the network of this machine, on 127.0.0.1.

import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { promisify } from 'node:util'
import { until } from '../wait.ts'
import { TENANT } from '../service.ts'

const LIMIT_MS = 1_800_000
/** podman's own are higher than those of this process may be. */
export const ULIMITS = ['--ulimit', 'nofile=4096:4096', '--ulimit', 'nproc=4096:4096']
const MAX_OUTPUT = 64 * 1024 * 1024

export interface Said {
  readonly code: number
  readonly stdout: string
  readonly stderr: string
}

/** podman and buildah, with images and containers in one folder. */
export class Images {
  readonly #folder: string

  constructor(folder: string) {
    this.#folder = folder
  }

  podman(...args: readonly string[]): Promise<Said> {
    return this.#run('podman', ['--runtime', 'runc', '--cgroup-manager', 'cgroupfs', ...args])
  }

  buildah(...args: readonly string[]): Promise<Said> {
    return this.#run('buildah', args)
  }

  async #run(program: string, args: readonly string[]): Promise<Said> {
    const storage = ['--root', `${this.#folder}/storage`, '--runroot', `${this.#folder}/run`]
    try {
      const { stdout, stderr } = await promisify(execFile)(program, [...storage, ...args], {
        // Nothing but systemd would run health checks on a timer; the proof asks for each.
        env: { ...process.env, DISABLE_HC_SYSTEMD: 'true' },
        timeout: LIMIT_MS,
        maxBuffer: MAX_OUTPUT,
      })
      return { code: 0, stdout, stderr }
    } catch (error) {
      const { code, stdout, stderr } = error as { code?: unknown; stdout?: string; stderr?: string }
      if (typeof code !== 'number') throw error
      return { code, stdout: stdout ?? '', stderr: stderr ?? '' }
    }
  }
}

/** Its output, or an error with what it said. */
export function must({ code, stdout, stderr }: Said, what: string): string {
  if (code !== 0) throw new Error(`${what} ended with ${code}: ${stdout.slice(-2000)}${stderr.slice(-2000)}`)
  return stdout.trim()
}

export interface ContainerOptions {
  readonly image: string
  readonly name: string
  readonly port: number
  /** Kept from one start to the next; null: the data goes with the container. */
  readonly volume: string | null
}

export class Container {
  readonly #images: Images
  readonly #options: ContainerOptions

  constructor(images: Images, options: ContainerOptions) {
    this.#images = images
    this.#options = options
  }

  get port(): number {
    return this.#options.port
  }

  /** Until it answers; the time that took, in ms. */
  async start(): Promise<number> {
    const { image, name, port, volume } = this.#options
    const restricted = ['--read-only', '--cap-drop', 'all', '--security-opt', 'no-new-privileges']
    const data = volume === null ? [] : ['--volume', `${volume}:/var/lib/intray`]
    const env = ['--env', 'INTRAY_HOST=127.0.0.1', '--env', `INTRAY_PORT=${port}`]
    const where = ['--network', 'host', ...ULIMITS, ...restricted, ...data, ...env]
    const startedAt = performance.now()
    must(await this.#images.podman('run', '--detach', '--name', name, ...where, image), 'podman run')
    await until('the container answers', () => this.#answers())
    return performance.now() - startedAt
  }

  /** Runs a command of Intray in it. */
  command(...args: readonly string[]): Promise<Said> {
    return this.exec('intray', ...args)
  }

  exec(...args: readonly string[]): Promise<Said> {
    return this.#images.podman('exec', this.#options.name, ...args)
  }

  async mint(scope: string): Promise<string> {
    const whose = ['--account', String(TENANT.account), '--company', String(TENANT.company)]
    const said = await this.command('token', 'create', ...whose, '--scope', scope, '--json')
    return (JSON.parse(must(said, 'intray token create')) as { token: string }).token
  }

  async health(): Promise<number> {
    return (await this.#images.podman('healthcheck', 'run', this.#options.name)).code
  }

  /** The process on this machine. */
  async status(): Promise<{ uid: number; memoryBytes: number }> {
    const format = ['--format', '{{.State.Pid}}']
    const pid = must(await this.#images.podman('inspect', ...format, this.#options.name), 'podman inspect')
    const status = readFileSync(`/proc/${pid}/status`, 'utf8')
    const field = (name: string) => Number(new RegExp(`^${name}:\\s+(\\d+)`, 'm').exec(status)?.[1])
    return { uid: field('Uid'), memoryBytes: field('VmRSS') * 1024 }
  }

  /** SIGKILL; the container is gone, and its data with it unless it is on a volume. */
  async kill(): Promise<void> {
    must(await this.#images.podman('kill', '--signal', 'KILL', this.#options.name), 'podman kill')
    await this.#images.podman('wait', this.#options.name)
    await this.remove()
  }

  /** As an operator stops it. Its exit code. */
  async stop(): Promise<number> {
    must(await this.#images.podman('stop', '--time', '60', this.#options.name), 'podman stop')
    const format = ['--format', '{{.State.ExitCode}}']
    const code = must(await this.#images.podman('inspect', ...format, this.#options.name), 'podman inspect')
    await this.remove()
    return Number(code)
  }

  async remove(): Promise<void> {
    await this.#images.podman('rm', '--force', '--volumes', '--time', '0', this.#options.name)
  }

  async #answers(): Promise<boolean> {
    try {
      return (await fetch(`http://127.0.0.1:${this.port}/livez`)).ok
    } catch {
      return false
    }
  }
}
