// argv in, exit code out.

import { runCommand } from './cli/run.ts'

// Whatever we write holds personal data: it is for its owner alone.
process.umask(0o077)
process.exitCode = await runCommand(process.argv.slice(2))
// A worker that could not start ends, and is missed: the channel to the process above would keep it here for ever.
process.channel?.unref()
