/// Moves through a JSON text and validates it.
///
/// Never reads beyond the end of the text.
struct JSONScanner {
    private let base: UnsafePointer<UInt8>
    private let end: Int
    private(set) var position = 0
    /// The byte that ``next()`` returned last.
    private(set) var taken: UInt8 = 0

    init(_ base: UnsafePointer<UInt8>, _ count: Int) {
        self.base = base
        end = count
    }

    var isAtEnd: Bool { position == end }

    @inline(__always) mutating func skipSpace() {
        while position < end {
            let byte = base[position]
            if byte > 0x20 || byte != 0x20 && byte != 0x0A && byte != 0x0D && byte != 0x09 { return }
            position &+= 1
        }
    }

    /// Returns the next byte and moves past it. Returns 0 at the end of the text; no JSON value begins with 0.
    @inline(__always) mutating func next() -> UInt8 {
        guard position < end else { return 0 }
        taken = base[position]
        position &+= 1
        return taken
    }

    @inline(__always) mutating func skip(_ byte: UInt8) -> Bool {
        guard position < end, base[position] == byte else { return false }
        position &+= 1
        return true
    }

    @inline(__always) mutating func skip(rest word: StaticString) -> Bool {
        let count = word.utf8CodeUnitCount
        guard end &- position >= count else { return false }
        for index in 0..<count where base[position &+ index] != word.utf8Start[index] { return false }
        position &+= count
        return true
    }

    // MARK: Numbers

    /// Skips the rest of a number after its first byte.
    /// - Returns: whether the number has neither fraction nor exponent; nil if it is malformed.
    @inline(__always) mutating func skipNumber() -> Bool? {
        var first = taken
        if first == UInt8(ascii: "-") {
            first = next()
            guard first &- 0x30 < 10 else { return nil }
        }
        if first == UInt8(ascii: "0") {
            if position < end, base[position] &- 0x30 < 10 { return nil }
        } else {
            skipDigits()
        }
        var isInteger = true
        if skip(UInt8(ascii: ".")) {
            isInteger = false
            guard skipDigits() > 0 else { return nil }
        }
        if skip(UInt8(ascii: "e")) || skip(UInt8(ascii: "E")) {
            isInteger = false
            if !skip(UInt8(ascii: "+")) { _ = skip(UInt8(ascii: "-")) }
            guard skipDigits() > 0 else { return nil }
        }
        return isInteger
    }

    @discardableResult @inline(__always) private mutating func skipDigits() -> Int {
        let start = position
        while position < end, base[position] &- 0x30 < 10 { position &+= 1 }
        return position &- start
    }

    // MARK: Strings

    /// Skips the rest of a string like ``skipString()``, if it is ASCII without escapes, and eight bytes of the text
    /// follow it.
    /// - Returns: whether it was skipped.
    @inline(__always) mutating func skipPlainString() -> Bool {
        var place = position
        while end &- place >= 8 {
            let word = UnsafeRawPointer(base + place).loadUnaligned(as: UInt64.self)
            let marks = Words.marks(word) | word & Words.tops
            place &+= marks == 0 ? 8 : marks.trailingZeroBitCount >> 3
            if marks == 0 { continue }
            guard base[place] == UInt8(ascii: "\"") else { return false }
            position = place &+ 1
            return true
        }
        return false
    }

    /// Skips the rest of a string after its opening quote, including the closing quote.
    /// - Returns: nil if the string is malformed: it does not end, or contains a control character, an unknown escape,
    ///   half a surrogate pair, or bytes that are not UTF-8.
    @inline(never) mutating func skipString() -> (isASCII: Bool, hasEscapes: Bool)? {
        var isASCII = true
        var hasEscapes = false
        while true {
            while end &- position >= 8 {
                let word = UnsafeRawPointer(base + position).loadUnaligned(as: UInt64.self)
                // Use only the lowest mark, which is always right. Higher marks may be wrong: see ``Words/marks(_:)``.
                let marks = Words.marks(word) | word & Words.tops
                if marks != 0 {
                    position &+= marks.trailingZeroBitCount >> 3
                    break
                }
                position &+= 8
            }
            guard position < end else { return nil }
            let byte = base[position]
            position &+= 1
            if byte >= 0x80 {
                isASCII = false
                guard skipScalar(byte) else { return nil }
            } else if byte == UInt8(ascii: "\"") {
                return (isASCII, hasEscapes)
            } else if byte == UInt8(ascii: "\\") {
                hasEscapes = true
                guard skipEscape() else { return nil }
            } else if byte < 0x20 {
                return nil
            }
        }
    }

    /// Skips the rest of a UTF-8 sequence after its first byte. Accepts what table 3-7 of the Unicode Standard allows.
    private mutating func skipScalar(_ first: UInt8) -> Bool {
        var low: UInt8 = 0x80
        var high: UInt8 = 0xBF
        let more: Int
        switch first {
        case 0xC2...0xDF: more = 1
        case 0xE0: (more, low) = (2, 0xA0)
        case 0xED: (more, high) = (2, 0x9F)
        case 0xE1...0xEF: more = 2
        case 0xF0: (more, low) = (3, 0x90)
        case 0xF1...0xF3: more = 3
        case 0xF4: (more, high) = (3, 0x8F)
        default: return false
        }
        guard end &- position >= more, base[position] >= low, base[position] <= high else { return false }
        for offset in 1..<more where base[position &+ offset] & 0xC0 != 0x80 { return false }
        position &+= more
        return true
    }

    /// Skips the rest of an escape after its backslash.
    private mutating func skipEscape() -> Bool {
        switch next() {
        case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"), UInt8(ascii: "b"), UInt8(ascii: "f"),
            UInt8(ascii: "n"), UInt8(ascii: "r"), UInt8(ascii: "t"):
            return true
        case UInt8(ascii: "u"):
            guard let unit = skipHex() else { return false }
            if unit & 0xF800 != 0xD800 { return true }
            // A high surrogate must be followed by an escape for a low surrogate.
            guard unit < 0xDC00, skip(UInt8(ascii: "\\")), skip(UInt8(ascii: "u")), let low = skipHex() else {
                return false
            }
            return low & 0xFC00 == 0xDC00
        default:
            return false
        }
    }

    private mutating func skipHex() -> UInt32? {
        guard end &- position >= 4, let unit = HexDigits.unit(base + position) else { return nil }
        position &+= 4
        return unit
    }
}

enum HexDigits {
    /// Parses the four hexadecimal digits at `digits`. Returns nil if one of the bytes is not such a digit.
    static func unit(_ digits: UnsafePointer<UInt8>) -> UInt32? {
        var unit: UInt32 = 0
        for index in 0..<4 {
            guard let digit = value(digits[index]) else { return nil }
            unit = unit << 4 | UInt32(digit)
        }
        return unit
    }

    @inline(__always) static func value(_ digit: UInt8) -> UInt8? {
        switch digit {
        case 0x30...0x39: digit &- 0x30
        case 0x41...0x46: digit &- 0x41 &+ 10
        case 0x61...0x66: digit &- 0x61 &+ 10
        default: nil
        }
    }

    /// Returns the hexadecimal digit, in upper case, of a number below 16.
    @inline(__always) static func upper(_ value: UInt8) -> UInt8 { value < 10 ? 0x30 &+ value : 0x41 &+ value &- 10 }
}
