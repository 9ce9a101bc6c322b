import LarderRESP

// Functions that read the words of a call.

/// Whether `bytes` equal `word`, ignoring the case of ASCII letters. `word` must be in capitals.
@inline(__always)
func equalsIgnoringCase(_ bytes: UnsafeRawBufferPointer, _ word: StaticString) -> Bool {
    bytes.count == word.utf8CodeUnitCount && matches(bytes, word)
}

/// Compares words of equal length as ``equalsIgnoringCase(_:_:)`` does.
private func matches(_ bytes: UnsafeRawBufferPointer, _ word: StaticString) -> Bool {
    for index in 0..<bytes.count {
        let byte = bytes[index]
        let upper = byte >= 0x61 && byte <= 0x7A ? byte - 0x20 : byte
        // The static string has `bytes.count` bytes, so `index` is valid.
        if upper != word.utf8Start[index] { return false }
    }
    return true
}

/// Parses a decimal integer in the form that Redis accepts: with an optional minus, but without plus, leading zeros or
/// spaces. Returns nil for all other texts.
func parseInteger(_ bytes: UnsafeRawBufferPointer) -> Int64? {
    guard bytes.count > 0, bytes.count <= 20 else { return nil }
    let isNegative = bytes[0] == 0x2D
    let digits = UnsafeRawBufferPointer(rebasing: bytes.dropFirst(isNegative ? 1 : 0))
    guard let first = digits.first else { return nil }
    if first == 0x30 { return digits.count == 1 && !isNegative ? 0 : nil }
    var value: Int64 = 0
    for digit in digits {
        guard digit >= 0x30, digit <= 0x39 else { return nil }
        let (shifted, overflow) = value.multipliedReportingOverflow(by: 10)
        let (sum, carry) = shifted.subtractingReportingOverflow(Int64(digit - 0x30))
        // Build the number as a negative one, because the smallest Int64 has no positive counterpart.
        guard !overflow, !carry else { return nil }
        value = sum
    }
    if isNegative { return value }
    return value == Int64.min ? nil : -value
}

/// Returns at most `most` bytes of a word, for use in an error. Stops at the first NUL.
func shown(_ bytes: UnsafeRawBufferPointer, _ most: Int) -> [UInt8] {
    Array(bytes.prefix(most).prefix { $0 != 0 })
}

/// The names of frequent options as integers, which can be compared quickly.
extension ShortWord {
    static var nx: ShortWord { ShortWord(constant: 0x78_6E, length: 2) }
    static var xx: ShortWord { ShortWord(constant: 0x78_78, length: 2) }
    static var ex: ShortWord { ShortWord(constant: 0x78_65, length: 2) }
    static var px: ShortWord { ShortWord(constant: 0x78_70, length: 2) }
    static var exat: ShortWord { ShortWord(constant: 0x74_61_78_65, length: 4) }
    static var pxat: ShortWord { ShortWord(constant: 0x74_61_78_70, length: 4) }
}
