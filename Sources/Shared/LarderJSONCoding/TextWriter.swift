/// A growing buffer of JSON text. Its memory is kept for the next document, so that writing usually allocates nothing.
///
/// For one thread at a time. Each function reserves space before it writes, so nothing is written beyond `capacity`.
struct TextWriter {
    private(set) var base: UnsafeMutablePointer<UInt8>
    private(set) var capacity: Int
    /// The number of bytes written. Set it to a previous value to discard the bytes written since then.
    var count = 0

    /// If the capacity is larger than this, in bytes, the memory is not kept for the next document.
    private static let keptBytesMax = 1 << 20
    private static let firstCapacity = 1024

    init() {
        capacity = Self.firstCapacity
        base = .allocate(capacity: capacity)
    }

    func free() { base.deallocate() }

    /// Discards the text. Frees the memory if it is unusually large.
    mutating func reset() {
        count = 0
        guard capacity > Self.keptBytesMax else { return }
        base.deallocate()
        capacity = Self.firstCapacity
        base = .allocate(capacity: capacity)
    }

    var bytes: UnsafeRawBufferPointer { UnsafeRawBufferPointer(start: base, count: count) }

    @inline(__always) mutating func reserve(_ more: Int) {
        if capacity &- count < more { grow(more) }
    }

    @inline(never) private mutating func grow(_ more: Int) {
        let larger = max(capacity * 2, count + more)
        let moved = UnsafeMutablePointer<UInt8>.allocate(capacity: larger)
        moved.update(from: base, count: count)
        base.deallocate()
        base = moved
        capacity = larger
    }

    @inline(__always) mutating func append(_ byte: UInt8) {
        reserve(1)
        base[count] = byte
        count &+= 1
    }

    mutating func append(_ bytes: UnsafeBufferPointer<UInt8>) {
        guard let start = bytes.baseAddress, bytes.count > 0 else { return }
        reserve(bytes.count)
        (base + count).update(from: start, count: bytes.count)
        count &+= bytes.count
    }

    mutating func append(_ text: StaticString) {
        append(UnsafeBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount))
    }

    mutating func append(isTrue value: Bool) { value ? append("true") : append("false") }

    // MARK: Strings

    /// Appends a string in quotes. Escapes only what RFC 8259 requires.
    mutating func append(quoting text: String) {
        var text = text
        text.withUTF8 { append(quoting: $0) }
    }

    mutating func append(quoting text: UnsafeBufferPointer<UInt8>) {
        // Reserve space for the bytes and the quotes. Bytes that need no escape are copied eight at a time.
        reserve(text.count &+ 10)
        base[count] = 0x22
        count &+= 1
        var index = 0
        let end = text.count
        if let source = text.baseAddress {
            while index &+ 8 <= end {
                let word = UnsafeRawPointer(source + index).loadUnaligned(as: UInt64.self)
                if Words.marks(word) != 0 {
                    for _ in 0..<8 {
                        appendEscaping(source[index], more: end &- index)
                        index &+= 1
                    }
                } else {
                    UnsafeMutableRawPointer(base + count).storeBytes(of: word, as: UInt64.self)
                    count &+= 8
                    index &+= 8
                }
            }
            while index < end {
                appendEscaping(source[index], more: end &- index)
                index &+= 1
            }
        }
        base[count] = 0x22
        count &+= 1
    }

    /// - Parameter more: the number of remaining bytes of the string, including `byte`.
    @inline(__always) private mutating func appendEscaping(_ byte: UInt8, more: Int) {
        if byte >= 0x20, byte != 0x22, byte != 0x5C {
            base[count] = byte
            count &+= 1
        } else {
            appendEscape(byte, more: more)
        }
    }

    @inline(never) private mutating func appendEscape(_ byte: UInt8, more: Int) {
        reserve(more &+ 16)
        base[count] = 0x5C
        let letter: UInt8
        switch byte {
        case 0x22, 0x5C: letter = byte
        case 0x08: letter = UInt8(ascii: "b")
        case 0x09: letter = UInt8(ascii: "t")
        case 0x0A: letter = UInt8(ascii: "n")
        case 0x0C: letter = UInt8(ascii: "f")
        case 0x0D: letter = UInt8(ascii: "r")
        default:
            let low = byte & 15
            base[count &+ 1] = UInt8(ascii: "u")
            base[count &+ 2] = UInt8(ascii: "0")
            base[count &+ 3] = UInt8(ascii: "0")
            base[count &+ 4] = UInt8(ascii: "0") &+ byte >> 4
            base[count &+ 5] = low < 10 ? UInt8(ascii: "0") &+ low : UInt8(ascii: "a") &+ low &- 10
            count &+= 6
            return
        }
        base[count &+ 1] = letter
        count &+= 2
    }

    // MARK: Numbers

    @inline(__always) mutating func append<Value: FixedWidthInteger>(integer value: Value) {
        if Value.bitWidth > 64 {
            append(number: String(value))
        } else if Value.isSigned {
            append(Int64(truncatingIfNeeded: value))
        } else {
            append(UInt64(truncatingIfNeeded: value))
        }
    }

    mutating func append(_ value: Int64) {
        if value < 0 { append(UInt8(ascii: "-")) }
        append(value.magnitude)
    }

    mutating func append(_ value: UInt64) {
        reserve(20)
        var length = 1
        var limit: UInt64 = 10
        while length < 20, value >= limit {
            length &+= 1
            let next = limit.multipliedReportingOverflow(by: 10)
            if next.overflow { break }
            limit = next.partialValue
        }
        var rest = value
        var place = count &+ length
        count = place
        repeat {
            place &-= 1
            base[place] = UInt8(ascii: "0") &+ UInt8(truncatingIfNeeded: rest % 10)
            rest /= 10
        } while rest > 0
    }

    /// Appends the shortest decimal text that parses as the same number, without `.0`. The number must be finite.
    mutating func append(_ value: Double) {
        // Write integers below 2^53 without a fraction. -0 needs its sign, which an integer does not have.
        if value.magnitude < 0x1p53, value.rounded(.towardZero) == value, value != 0 || value.sign == .plus {
            append(Int64(value))
        } else {
            append(number: value.description)
        }
    }

    /// Like `append(_: Double)`, for a float.
    mutating func append(_ value: Float) {
        if value.magnitude < 0x1p24, value.rounded(.towardZero) == value, value != 0 || value.sign == .plus {
            append(Int64(value))
        } else {
            append(number: value.description)
        }
    }

    mutating func append(number text: String) {
        var text = text
        text.withUTF8 { digits in
            let isWhole = digits.count > 2 && digits[digits.count - 1] == 0x30 && digits[digits.count - 2] == 0x2E
            append(UnsafeBufferPointer(rebasing: isWhole ? digits.dropLast(2) : digits[...]))
        }
    }
}

/// Searches eight bytes at a time.
enum Words {
    static let ones: UInt64 = 0x0101_0101_0101_0101
    static let tops: UInt64 = 0x8080_8080_8080_8080

    /// Returns a word in which the top bit of each byte that is a quote, a backslash or a control character is set.
    /// Only the first (lowest) set bit is reliable: higher bits may be set wrongly.
    @inline(__always) static func marks(_ word: UInt64) -> UInt64 {
        let quote = word ^ (ones &* 0x22)
        let slash = word ^ (ones &* 0x5C)
        let control = (word &- ones &* 0x20) & ~word
        return (control | (quote &- ones) & ~quote | (slash &- ones) & ~slash) & tops
    }
}
