// Arbitrary text for property tests: any UTF-16 units, lone surrogates and U+0000 among them. (fast-check's own 'binary'
// unit takes seconds to set up.)

import fc from 'fast-check'

export function anyText(maxLength = 40): fc.Arbitrary<string> {
  const unit = fc.oneof(
    fc.integer({ min: 0x20, max: 0x7e }),
    fc.constantFrom(0, 9, 10, 13, 0x22, 0x5c, 0x80, 0xa0, 0x2028, 0xd800, 0xdbff, 0xdc00, 0xdfff, 0xfeff, 0xffff),
    fc.integer({ min: 0, max: 0xffff }),
  )
  return fc.array(unit, { maxLength }).map((units) => String.fromCharCode(...units))
}
