// argv in, exit code out.

import { runCommand } from './cli/run.ts'

// Whatever we write holds personal data: it is for its owner alone.
process.umask(0o077)
process.exitCode = await runCommand(process.argv.slice(2))
