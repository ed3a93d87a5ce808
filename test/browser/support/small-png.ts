// Makes the pictures of the documentation small: a screenshot has few colours, so a palette of the 256 most frequent ones, with
// the rest at their nearest, is a third of the size and looks the same.

import { crc32, deflateSync, inflateSync } from 'node:zlib'

const SIGNATURE = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a])
const PALETTE_SIZE = 256

export function smallPng(png: Buffer): Buffer {
  const { width, height, pixels } = decode(png)
  const palette = mostFrequent(pixels)
  const places = new Map(palette.map((colour, place) => [colour, place]))
  const rows = Buffer.alloc((width + 1) * height)
  for (let y = 0; y < height; y++) {
    for (let x = 0; x < width; x++) {
      const colour = pixels[y * width + x]!
      let place = places.get(colour)
      if (place === undefined) places.set(colour, (place = nearest(palette, colour)))
      rows[y * (width + 1) + 1 + x] = place
    }
  }
  const head = Buffer.alloc(13)
  head.writeUInt32BE(width, 0)
  head.writeUInt32BE(height, 4)
  // Eight bits for each pixel, which are a place in the palette.
  head.set([8, 3, 0, 0, 0], 8)
  const colours = Buffer.from(palette.flatMap((colour) => [colour >> 16, (colour >> 8) & 255, colour & 255]))
  const parts = [part('IHDR', head), part('PLTE', colours), part('IDAT', deflateSync(rows, { level: 9 }))]
  return Buffer.concat([SIGNATURE, ...parts, part('IEND', Buffer.alloc(0))])
}

interface Picture {
  readonly width: number
  readonly height: number
  /** 0xrrggbb, row by row. */
  readonly pixels: Uint32Array
}

/** Of eight bits a channel, RGB or RGBA, not interlaced: what Chromium writes. */
function decode(png: Buffer): Picture {
  const width = png.readUInt32BE(16)
  const height = png.readUInt32BE(20)
  const channels = png[25] === 6 ? 4 : 3
  const data: Buffer[] = []
  for (let at = 8; at < png.length; ) {
    const length = png.readUInt32BE(at)
    if (png.toString('latin1', at + 4, at + 8) === 'IDAT') data.push(png.subarray(at + 8, at + 8 + length))
    at += 12 + length
  }
  const bytes = inflateSync(Buffer.concat(data))
  const stride = width * channels
  const pixels = new Uint32Array(width * height)
  let above = new Uint8Array(stride)
  for (let y = 0; y < height; y++) {
    const row = unfiltered(bytes.subarray(y * (stride + 1), (y + 1) * (stride + 1)), above, channels)
    for (let x = 0; x < width; x++) {
      const at = x * channels
      pixels[y * width + x] = (row[at]! << 16) | (row[at + 1]! << 8) | row[at + 2]!
    }
    above = row
  }
  return { width, height, pixels }
}

/** Each byte was written as a difference from its neighbours, as the first byte of the row says. */
function unfiltered(line: Uint8Array, above: Uint8Array, channels: number): Uint8Array<ArrayBuffer> {
  const filter = line[0]
  const row = new Uint8Array(line.length - 1)
  for (let at = 0; at < row.length; at++) {
    const left = row[at - channels] ?? 0
    const up = above[at]!
    const corner = above[at - channels] ?? 0
    const guess = [0, left, up, (left + up) >> 1, paeth(left, up, corner)][filter!]!
    row[at] = line[at + 1]! + guess
  }
  return row
}

function paeth(left: number, up: number, corner: number): number {
  const guess = left + up - corner
  const [toLeft, toUp, toCorner] = [Math.abs(guess - left), Math.abs(guess - up), Math.abs(guess - corner)]
  if (toLeft <= toUp && toLeft <= toCorner) return left
  return toUp <= toCorner ? up : corner
}

function mostFrequent(pixels: Uint32Array): number[] {
  const counts = new Map<number, number>()
  for (const colour of pixels) counts.set(colour, (counts.get(colour) ?? 0) + 1)
  const byCount = [...counts].sort(([, a], [, b]) => b - a)
  return byCount.slice(0, PALETTE_SIZE).map(([colour]) => colour)
}

function nearest(palette: readonly number[], colour: number): number {
  let best = 0
  let bestDistance = Infinity
  for (const [place, known] of palette.entries()) {
    const distance =
      ((known >> 16) - (colour >> 16)) ** 2 +
      (((known >> 8) & 255) - ((colour >> 8) & 255)) ** 2 +
      ((known & 255) - (colour & 255)) ** 2
    if (distance < bestDistance) [best, bestDistance] = [place, distance]
  }
  return best
}

function part(name: string, content: Buffer): Buffer {
  const body = Buffer.concat([Buffer.from(name, 'latin1'), content])
  const frame = Buffer.alloc(8)
  frame.writeUInt32BE(content.length, 0)
  frame.writeUInt32BE(crc32(body), 4)
  return Buffer.concat([frame.subarray(0, 4), body, frame.subarray(4)])
}
