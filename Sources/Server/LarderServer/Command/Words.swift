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

/// Returns the beginning of a word for use in an error: at most `most` bytes, and none from the first NUL on.
func shown(_ bytes: UnsafeRawBufferPointer, _ most: Int) -> [UInt8] {
    Array(bytes.prefix(most).prefix { $0 != 0 })
}

/// The names of frequent commands and options as integers, which can be compared quickly.
extension ShortWord {
    static var del: ShortWord { ShortWord(constant: 0x6C_65_64, length: 3) }
    static var unlink: ShortWord { ShortWord(constant: 0x6B_6E_69_6C_6E_75, length: 6) }
    static var ttl: ShortWord { ShortWord(constant: 0x6C_74_74, length: 3) }
    static var pttl: ShortWord { ShortWord(constant: 0x6C_74_74_70, length: 4) }
    static var incr: ShortWord { ShortWord(constant: 0x72_63_6E_69, length: 4) }
    static var decr: ShortWord { ShortWord(constant: 0x72_63_65_64, length: 4) }
    static var incrby: ShortWord { ShortWord(constant: 0x79_62_72_63_6E_69, length: 6) }
    static var decrby: ShortWord { ShortWord(constant: 0x79_62_72_63_65_64, length: 6) }
    static var expire: ShortWord { ShortWord(constant: 0x65_72_69_70_78_65, length: 6) }
    static var pexpire: ShortWord { ShortWord(constant: 0x65_72_69_70_78_65_70, length: 7) }
    static var get: ShortWord { ShortWord(constant: 0x74_65_67, length: 3) }
    static var set: ShortWord { ShortWord(constant: 0x74_65_73, length: 3) }
    static var fetch: ShortWord { ShortWord(constant: 0x68_63_74_65_66, length: 5) }
    static var eval: ShortWord { ShortWord(constant: 0x6C_61_76_65, length: 4) }
    static var evalsha: ShortWord { ShortWord(constant: 0x61_68_73_6C_61_76_65, length: 7) }
    static var fcall: ShortWord { ShortWord(constant: 0x6C_6C_61_63_66, length: 5) }
    static var ping: ShortWord { ShortWord(constant: 0x67_6E_69_70, length: 4) }
    static var mget: ShortWord { ShortWord(constant: 0x74_65_67_6D, length: 4) }
    static var exists: ShortWord { ShortWord(constant: 0x73_74_73_69_78_65, length: 6) }
    static var ex: ShortWord { ShortWord(constant: 0x78_65, length: 2) }
    static var px: ShortWord { ShortWord(constant: 0x78_70, length: 2) }
}
