// Conversion between numbers and decimal text. Integers are converted without allocating memory.

package enum DecimalText {
    /// The length of the longest 64-bit integer with its sign, in bytes.
    package static let lengthMax = 20

    /// Parses an integer in the strict form that Redis accepts: digits without leading zeros, after a `-` if negative.
    /// Returns nil for other text and for numbers that do not fit into 64 bits.
    static func integer(_ text: UnsafeRawPointer, count: Int) -> Int64? {
        guard count > 0, count <= lengthMax else { return nil }
        let negative = text.load(as: UInt8.self) == ASCII.minus
        var index = negative ? 1 : 0
        guard index < count else { return nil }
        let first = text.load(fromByteOffset: index, as: UInt8.self)
        if first == ASCII.zero { return count == 1 ? 0 : nil }
        var magnitude: UInt64 = 0
        while index < count {
            let digit = text.load(fromByteOffset: index, as: UInt8.self) &- ASCII.zero
            guard digit <= 9 else { return nil }
            let (product, tooBig) = magnitude.multipliedReportingOverflow(by: 10)
            let (sum, carried) = product.addingReportingOverflow(UInt64(digit))
            guard !tooBig, !carried else { return nil }
            magnitude = sum
            index += 1
        }
        if negative { return magnitude <= Int64.min.magnitude ? Int64(truncatingIfNeeded: 0 &- magnitude) : nil }
        return Int64(exactly: magnitude)
    }

    /// Writes an integer as decimal text.
    /// - Parameter destination: memory for at least ``lengthMax`` bytes.
    /// - Returns: the number of bytes written.
    @inline(__always)
    package static func write(_ value: Int64, to destination: UnsafeMutableRawPointer) -> Int {
        if value >= 0, value <= 9 {
            destination.storeBytes(of: ASCII.zero &+ UInt8(truncatingIfNeeded: value), as: UInt8.self)
            return 1
        }
        return writeLong(value, to: destination)
    }

    private static func writeLong(_ value: Int64, to destination: UnsafeMutableRawPointer) -> Int {
        var rest = value.magnitude
        var length = 1
        var bound: UInt64 = 10
        while length < lengthMax - 1, rest >= bound {
            length += 1
            bound = bound &* 10
        }
        if rest >= 10_000_000_000_000_000_000 { length = lengthMax }
        var start = 0
        if value < 0 {
            destination.storeBytes(of: ASCII.minus, as: UInt8.self)
            start = 1
        }
        var index = start + length - 1
        while index >= start {
            let (quotient, digit) = rest.quotientAndRemainder(dividingBy: 10)
            destination.storeBytes(
                of: ASCII.zero &+ UInt8(truncatingIfNeeded: digit), toByteOffset: index, as: UInt8.self)
            rest = quotient
            index -= 1
        }
        return start + length
    }

    /// Returns the shortest text that parses as the same number, without `.0` for whole numbers; `inf`, `-inf` or `nan`
    /// for the special values.
    static func text(_ value: Double) -> String {
        if value.isNaN { return "nan" }
        if value.isInfinite { return value < 0 ? "-inf" : "inf" }
        let text = value.description
        return text.hasSuffix(".0") ? String(text.dropLast(2)) : text
    }

    /// Parses a number in any decimal notation, including `inf`, `-inf` and `nan`. Returns nil for other text.
    static func double(_ text: String) -> Double? {
        switch text {
        case "inf", "+inf": return .infinity
        case "-inf": return -.infinity
        case "nan", "-nan": return .nan
        default: break
        }
        let allowed = text.utf8.allSatisfy { byte in
            switch byte {
            case UInt8(ascii: "0")...UInt8(ascii: "9"), ASCII.minus, ASCII.plus: true
            case UInt8(ascii: "."), UInt8(ascii: "e"), UInt8(ascii: "E"): true
            default: false
            }
        }
        return allowed ? Double(text) : nil
    }
}

/// Names of the ASCII characters that the RESP protocol uses.
enum ASCII {
    static let tab: UInt8 = 0x09
    static let lineFeed: UInt8 = 0x0A
    static let carriageReturn: UInt8 = 0x0D
    static let space: UInt8 = 0x20
    static let doubleQuote = UInt8(ascii: "\"")
    static let singleQuote = UInt8(ascii: "'")
    static let backslash = UInt8(ascii: "\\")
    static let zero = UInt8(ascii: "0")
    static let minus = UInt8(ascii: "-")
    static let plus = UInt8(ascii: "+")

    /// Whether the byte is white space, as defined by C's isspace in the C locale.
    static func isSpace(_ byte: UInt8) -> Bool { byte == space || (tab...carriageReturn).contains(byte) }

    /// Returns the value of a hexadecimal digit; nil for other bytes.
    static func hexValue(_ byte: UInt8) -> UInt8? {
        switch byte {
        case UInt8(ascii: "0")...UInt8(ascii: "9"): byte - UInt8(ascii: "0")
        case UInt8(ascii: "a")...UInt8(ascii: "f"): byte - UInt8(ascii: "a") + 10
        case UInt8(ascii: "A")...UInt8(ascii: "F"): byte - UInt8(ascii: "A") + 10
        default: nil
        }
    }
}
