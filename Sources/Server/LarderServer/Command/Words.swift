// Reads the words of a call.

/// Whether `bytes` are `word` (given in capitals), in any case of ASCII letters.
func equalsIgnoringCase(_ bytes: UnsafeRawBufferPointer, _ word: StaticString) -> Bool {
    guard bytes.count == word.utf8CodeUnitCount else { return false }
    for index in 0..<bytes.count {
        let byte = bytes[index]
        let upper = byte >= 0x61 && byte <= 0x7A ? byte - 0x20 : byte
        // `index` is within the static string: it is less than `bytes.count`, which equals the string's count.
        if upper != word.utf8Start[index] { return false }
    }
    return true
}

/// Parses a decimal integer in the form that Redis accepts: an optional minus, no plus, no leading zero, no spaces; nil
/// otherwise.
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
        // The sum is negative until the end, because the negative range is larger by one.
        guard !overflow, !carry else { return nil }
        value = sum
    }
    if isNegative { return value }
    return value == Int64.min ? nil : -value
}

/// The first `most` bytes of an argument for the text of an error, up to its first NUL.
func shown(_ bytes: UnsafeRawBufferPointer, _ most: Int) -> [UInt8] {
    Array(bytes.prefix(most).prefix { $0 != 0 })
}
