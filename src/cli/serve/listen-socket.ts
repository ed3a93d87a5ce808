// Socket activation: systemd, or another process that speaks its protocol (sd_listen_fds), holds the listening socket and
// passes it on. It stays open between two processes, so a restart lets senders wait instead of refusing them.

import { CommandError } from '../command.ts'

type Environment = Record<string, string | undefined>

/** The first descriptor that the protocol passes on. */
const FIRST_FD = 3
/** For workers of this process, which listen on the socket through it. */
const WORKER_FD = 'WORKER_LISTEN_FD'
const UNUSABLE = ['EBADF', 'EINVAL', 'ENOTSOCK', 'ENOTSUP', 'ERR_INVALID_FD_TYPE']

/** Null if none was passed to this process. The variables are removed: processes that it starts do not have the socket. */
export function takeListenFd(environment: Environment, pid: number): number | null {
  const { LISTEN_PID: forPid, LISTEN_FDS: count } = environment
  for (const name of ['LISTEN_PID', 'LISTEN_FDS', 'LISTEN_FDNAMES']) delete environment[name]
  if (forPid !== String(pid) || count === undefined || count === '0') return null
  if (count !== '1') {
    throw new CommandError(
      `LISTEN_FDS is ${count}, and Intray takes one socket. Leave one ListenStream= in its .socket unit, or run one service for each.`,
    )
  }
  return FIRST_FD
}

/** What workers are started with, so that they find the socket. */
export function workerEnvironment(listenFd: number | null): Environment {
  return listenFd === null ? {} : { [WORKER_FD]: String(listenFd) }
}

/** In a worker. */
export function workerListenFd(environment: Environment): number | null {
  const fd = environment[WORKER_FD]
  return fd === undefined ? null : Number(fd)
}

/** Why the socket cannot be used; null for another failure. */
export function listenFdProblem(error: unknown): CommandError | null {
  const { code } = error as NodeJS.ErrnoException
  return UNUSABLE.includes(code ?? '')
    ? new CommandError(
        `The socket that LISTEN_FDS passes on cannot be used (${code}). Intray needs a listening TCP socket: ListenStream=8080 in the .socket unit.`,
      )
    : null
}
