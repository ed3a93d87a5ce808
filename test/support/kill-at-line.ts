// Loaded into a command by `killedAtLine`: ends it, as `kill -9` would, when it has printed the text in KILL_AT on stderr. A parent
// that reads the line and kills then is too late on a busy machine.

const at = process.env.KILL_AT!
const write = process.stderr.write.bind(process.stderr) as (chunk: unknown, ...more: unknown[]) => boolean

process.stderr.write = (chunk: unknown, ...more: unknown[]) => {
  const written = write(chunk, ...more)
  if (String(chunk).includes(at)) process.kill(process.pid, 'SIGKILL')
  return written
}
