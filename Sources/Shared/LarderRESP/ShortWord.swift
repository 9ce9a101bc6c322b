// Short words, such as names of commands and options, that are compared as numbers.

/// A word of up to 15 bytes, stored in two integers. Words that differ only in the case of ASCII letters are equal.
/// Longer words become ``other``, which is equal to no short word.
@usableFromInline package struct ShortWord: Hashable, Sendable {
    /// The first eight bytes of the word in lower case. The first byte is in the lowest bits. Missing bytes are zero.
    @usableFromInline let low: UInt64
    /// The next seven bytes, and the length of the word in the highest byte.
    @usableFromInline let high: UInt64

    package static let lengthMax = 15
    package static var other: ShortWord { ShortWord(low: .max, high: .max) }

    @usableFromInline init(low: UInt64, high: UInt64) { (self.low, self.high) = (low, high) }

    /// Creates a word from its length and a number with up to eight lower-case letters, the first letter in the lowest
    /// bits. For words that every command is compared with: the compiler makes such a word a constant.
    @inlinable package init(constant low: UInt64, length: UInt64) {
        self.init(low: low, high: length << 56)
    }

    package init(_ bytes: UnsafeRawBufferPointer) {
        guard let start = bytes.baseAddress, bytes.count <= Self.lengthMax else {
            self = bytes.isEmpty ? ShortWord(low: 0, high: 0) : .other
            return
        }
        let count = bytes.count
        // Two overlapping loads read words of 4 to 7 and 9 to 15 bytes, so that no load reads beyond the end.
        var low: UInt64 = 0
        var high: UInt64 = 0
        if count >= 8 {
            low = Self.load8(start)
            if count > 8 { high = Self.load8(start + (count - 8)) >> UInt64(8 * (16 - count)) }
        } else if count >= 4 {
            low = Self.load4(start) | Self.load4(start + (count - 4)) << UInt64(8 * (count - 4))
        } else if count > 0 {
            low =
                UInt64(bytes[0]) | UInt64(bytes[count >> 1]) << UInt64(8 * (count >> 1))
                | UInt64(bytes[count - 1]) << UInt64(8 * (count - 1))
        }
        self.init(low: Self.lowercase(low), high: Self.lowercase(high) | UInt64(count) << 56)
    }

    package init(_ bytes: [UInt8]) { self = bytes.withUnsafeBytes { ShortWord($0) } }

    package init(_ text: String) {
        var text = text
        self = text.withUTF8 { ShortWord(UnsafeRawBufferPointer($0)) }
    }

    // Not synthesized by the compiler, so that other modules can inline it.
    @inlinable package static func == (left: ShortWord, right: ShortWord) -> Bool {
        left.low == right.low && left.high == right.high
    }

    @inline(__always)
    private static func load8(_ start: UnsafeRawPointer) -> UInt64 {
        UInt64(littleEndian: start.loadUnaligned(as: UInt64.self))
    }

    @inline(__always)
    private static func load4(_ start: UnsafeRawPointer) -> UInt64 {
        UInt64(UInt32(littleEndian: start.loadUnaligned(as: UInt32.self)))
    }

    /// Converts eight ASCII bytes to lower case in one step, by setting bit 5 in bytes from `A` to `Z`.
    @inline(__always)
    private static func lowercase(_ word: UInt64) -> UInt64 {
        let each: UInt64 = 0x0101_0101_0101_0101
        let low7 = word & (0x7F * each)
        // Bit 7 of each byte shows in `fromA` whether the character is `A` or later, and in `aboveZ` whether it is
        // later than `Z`. No addition carries into the next byte.
        let fromA = low7 + (0x80 - 0x41) * each
        let aboveZ = low7 + (0x80 - 0x5B) * each
        let isUpper = (fromA ^ aboveZ) & ~word & (0x80 * each)
        return word | isUpper >> 2
    }
}
