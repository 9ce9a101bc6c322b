/// Decodes strings in a text that ``DocumentIndex`` has accepted, so the strings are well-formed.
enum StringText {
    /// Decodes a string without escapes.
    static func plain(_ bytes: UnsafeBufferPointer<UInt8>) -> String { String(decoding: bytes, as: UTF8.self) }

    /// Decodes a string with escapes. The result is never longer than the text.
    static func unescaped(_ bytes: UnsafeBufferPointer<UInt8>) -> String {
        guard let source = bytes.baseAddress else { return "" }
        return String(unsafeUninitializedCapacity: bytes.count) { target in
            guard let base = target.baseAddress else { return 0 }
            var count = 0
            var index = 0
            while index < bytes.count {
                let run = plainCount(source + index, bytes.count &- index)
                (base + count).update(from: source + index, count: run)
                count &+= run
                index &+= run
                if index == bytes.count { break }
                let letter = source[index &+ 1]
                index &+= 2
                if letter == UInt8(ascii: "u") {
                    count &+= write(scalar(source, &index), base + count)
                } else {
                    base[count] = character(letter)
                    count &+= 1
                }
            }
            return count
        }
    }

    /// Returns the number of bytes before the next backslash.
    private static func plainCount(_ source: UnsafePointer<UInt8>, _ end: Int) -> Int {
        var index = 0
        while end &- index >= 8 {
            let word = UnsafeRawPointer(source + index).loadUnaligned(as: UInt64.self) ^ (Words.ones &* 0x5C)
            let marks = (word &- Words.ones) & ~word & Words.tops
            if marks != 0 { return index &+ marks.trailingZeroBitCount >> 3 }
            index &+= 8
        }
        while index < end, source[index] != UInt8(ascii: "\\") { index &+= 1 }
        return index
    }

    /// Decodes the digits of one `\u` escape, or of two that are a surrogate pair. Moves `index` past these digits.
    private static func scalar(_ source: UnsafePointer<UInt8>, _ index: inout Int) -> UInt32 {
        let unit = HexDigits.unit(source + index) ?? 0
        index &+= 4
        guard unit & 0xFC00 == 0xD800 else { return unit }
        let low = HexDigits.unit(source + index + 2) ?? 0
        index &+= 6
        return 0x1_0000 &+ (unit & 0x3FF) << 10 &+ (low & 0x3FF)
    }

    /// Writes a scalar as UTF-8, and returns the number of bytes.
    private static func write(_ scalar: UInt32, _ target: UnsafeMutablePointer<UInt8>) -> Int {
        func tail(_ shift: UInt32) -> UInt8 { 0x80 | UInt8(scalar >> shift & 0x3F) }
        switch scalar {
        case 0..<0x80:
            target[0] = UInt8(scalar)
            return 1
        case 0..<0x800:
            target[0] = 0xC0 | UInt8(scalar >> 6)
            target[1] = tail(0)
            return 2
        case 0..<0x1_0000:
            target[0] = 0xE0 | UInt8(scalar >> 12)
            target[1] = tail(6)
            target[2] = tail(0)
            return 3
        default:
            target[0] = 0xF0 | UInt8(scalar >> 18 & 7)
            target[1] = tail(12)
            target[2] = tail(6)
            target[3] = tail(0)
            return 4
        }
    }

    private static func character(_ letter: UInt8) -> UInt8 {
        switch letter {
        case UInt8(ascii: "b"): 0x08
        case UInt8(ascii: "f"): 0x0C
        case UInt8(ascii: "n"): 0x0A
        case UInt8(ascii: "r"): 0x0D
        case UInt8(ascii: "t"): 0x09
        default: letter
        }
    }
}
