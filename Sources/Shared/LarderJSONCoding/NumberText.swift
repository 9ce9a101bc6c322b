/// Parses numbers in a text that ``DocumentIndex`` has accepted, so the numbers are well-formed.
enum NumberText {
    /// Parses a number that consists of digits and an optional sign; nil if it does not fit into the type.
    @inline(__always) static func integer<Value: FixedWidthInteger>(
        _ text: UnsafeBufferPointer<UInt8>, _ type: Value.Type
    ) -> Value? {
        let isNegative = text[0] == UInt8(ascii: "-")
        let first = isNegative ? 1 : 0
        guard text.count &- first <= 18 else { return Value(Substring(StringText.plain(text)), radix: 10) }
        var magnitude: Int64 = 0
        for index in first..<text.count { magnitude = magnitude &* 10 &+ Int64(text[index] &- 0x30) }
        return Value(exactly: isNegative ? -magnitude : magnitude)
    }

    /// Whether a number has neither a fraction nor an exponent.
    static func isInteger(_ text: UnsafeBufferPointer<UInt8>) -> Bool {
        text.allSatisfy { $0 == UInt8(ascii: "-") || $0 &- 0x30 < 10 }
    }

    /// Returns the nearest number; nil if the text's number is too large, or so small that it would become zero.
    static func real<Value: ExactPowers>(_ text: UnsafeBufferPointer<UInt8>, _ type: Value.Type) -> Value? {
        let decimal = Decimal(text)
        // Integers and powers of ten in these ranges are exact, so there is only one rounding (Clinger 1990).
        if decimal.isExact, decimal.digits <= Value.exactIntegersMax, abs(decimal.exponent) < Value.exactPowers.count {
            let power = Value.exactPowers[abs(decimal.exponent)]
            let whole = Value(decimal.digits)
            let value = decimal.exponent < 0 ? whole / power : whole * power
            return decimal.isNegative ? -value : value
        }
        guard let value = Value(StringText.plain(text)), value.isFinite, value != 0 || decimal.digits == 0 else {
            return nil
        }
        return value
    }

    static func double(_ text: UnsafeBufferPointer<UInt8>) -> Double? { real(text, Double.self) }

    /// A decimal number: `digits` × 10^`exponent`.
    private struct Decimal {
        var digits: UInt64 = 0
        var exponent = 0
        var isNegative = false
        /// Whether `digits` and `exponent` are exact: the number has at most 19 significant digits.
        var isExact = true

        init(_ text: UnsafeBufferPointer<UInt8>) {
            var index = 0
            var used = 0
            var isFraction = false
            if text[0] == UInt8(ascii: "-") {
                isNegative = true
                index = 1
            }
            while index < text.count {
                let byte = text[index]
                index &+= 1
                if byte &- 0x30 < 10 {
                    if used == 19 {
                        isExact = false
                        return
                    }
                    digits = digits &* 10 &+ UInt64(byte &- 0x30)
                    if digits != 0 { used &+= 1 }
                    if isFraction { exponent &-= 1 }
                } else if byte == UInt8(ascii: ".") {
                    isFraction = true
                } else {
                    readExponent(text, index)
                    return
                }
            }
        }

        private mutating func readExponent(_ text: UnsafeBufferPointer<UInt8>, _ start: Int) {
            var index = start
            let isDown = text[index] == UInt8(ascii: "-")
            if isDown || text[index] == UInt8(ascii: "+") { index &+= 1 }
            var power = 0
            while index < text.count {
                power = min(power &* 10 &+ Int(text[index] &- 0x30), 100_000)
                index &+= 1
            }
            exponent &+= isDown ? -power : power
        }
    }
}

/// A type of numbers with a fraction, and the integers that it represents exactly.
protocol ExactPowers: BinaryFloatingPoint, LosslessStringConvertible {
    /// All integers up to this one are exact.
    static var exactIntegersMax: UInt64 { get }
    /// The powers of ten that are exact, from 1 on.
    static var exactPowers: [Self] { get }
}

extension Double: ExactPowers {
    static let exactIntegersMax: UInt64 = 1 << 53
    static let exactPowers: [Double] = [
        1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19,
        1e20, 1e21, 1e22,
    ]
}

extension Float: ExactPowers {
    static let exactIntegersMax: UInt64 = 1 << 24
    static let exactPowers: [Float] = [1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10]
}
