// Random references and words for attackers: cheap, and never the same twice in a run.

const LETTERS = 'abcdefghijklmnopqrstuvwxyz'

export function ref(length: number): string {
  let text = ''
  for (let n = 0; n < length; n += 1) text += LETTERS[Math.floor(Math.random() * LETTERS.length)]!
  return text
}
