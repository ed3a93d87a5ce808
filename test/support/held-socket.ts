// A small process that holds a listening socket, as systemd does, and starts the service with it as often as it is told.

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import net, { type AddressInfo } from 'node:net'
import type { TestContext } from 'node:test'
import { isRunning } from './children.ts'
import { cleanEnvironment, LAUNCHER } from './process.ts'
import { until } from './until.ts'

/** The socket is its descriptor 3. Each line that it reads is a start. */
const HOLDER = `
while read -r line; do
  sh -c 'export LISTEN_FDS=1 LISTEN_PID=$$; exec "$0" serve' "$0" &
  echo "started $!"
done`

export interface HeldSocket {
  readonly port: number
  /** Resolves with the pid of the service when it listens. */
  start(): Promise<number>
  /** Sends SIGTERM and resolves when the process is gone. */
  stop(pid: number): Promise<void>
  /** What the services have printed. */
  printed(): string
}

export async function holdSocket(t: TestContext, env: Record<string, string>): Promise<HeldSocket> {
  const server = net.createServer()
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  const { fd } = (server as unknown as { readonly _handle: { readonly fd: number } })._handle
  const holder = spawn('sh', ['-c', HOLDER, LAUNCHER], {
    env: cleanEnvironment({ INTRAY_QUEUE_MAX_WAIT: '10m', ...env }),
    stdio: ['pipe', 'pipe', 'pipe', fd],
  })
  server.close()
  let printed = ''
  for (const stream of [holder.stdout!, holder.stderr!]) stream.on('data', (chunk: Buffer) => (printed += chunk))
  const ended = once(holder, 'exit')
  const pids = () => Array.from(printed.matchAll(/^started (\d+)$/gm), ([, pid]) => Number(pid))
  const listening = () => printed.split('Intray is listening on ').length - 1
  t.after(async () => {
    for (const pid of pids().filter(isRunning)) process.kill(pid, 'SIGKILL')
    holder.kill('SIGKILL')
    await ended
  })
  let starts = 0
  return {
    port,
    start: async () => {
      starts += 1
      holder.stdin!.write('start\n')
      await until(`start ${starts} listens`, () => {
        if (pids().length === starts && !isRunning(pids().at(-1)!)) throw new Error(`it ended: ${printed}`)
        return listening() === starts
      })
      return pids().at(-1)!
    },
    stop: async (pid) => {
      process.kill(pid, 'SIGTERM')
      await until('the service has ended', () => !isRunning(pid))
    },
    printed: () => printed,
  }
}
