// Entry point: argv in, exit code out.

import { runCommand } from './cli/run.ts'

// All files that it writes hold personal data: only their owner may read them.
process.umask(0o077)
process.exitCode = await runCommand(process.argv.slice(2))
// A worker that failed to start must exit, so that its parent notices; the open IPC channel would keep it alive.
process.channel?.unref()
