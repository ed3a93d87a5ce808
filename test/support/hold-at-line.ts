// Loaded into a command by `copyWhile`: stops it, as SIGSTOP does, when it has printed the text in HOLD_AT on stderr for the first
// time. A parent that reads the line and begins then is too late on a busy machine.

const at = process.env.HOLD_AT!
const write = process.stderr.write.bind(process.stderr) as (chunk: unknown, ...more: unknown[]) => boolean
let isHeld = false

process.stderr.write = (chunk: unknown, ...more: unknown[]) => {
  const written = write(chunk, ...more)
  if (!isHeld && String(chunk).includes(at)) {
    isHeld = true
    process.kill(process.pid, 'SIGSTOP')
  }
  return written
}
