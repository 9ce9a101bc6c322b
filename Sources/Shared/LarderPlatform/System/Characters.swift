/// Converts bytes to hexadecimal digits and back.
package enum HexText {
    private static let digits = Array("0123456789abcdef".utf8)

    package static func text(_ bytes: some Sequence<UInt8>) -> String {
        var text: [UInt8] = []
        for byte in bytes {
            text.append(digits[Int(byte >> 4)])
            text.append(digits[Int(byte & 15)])
        }
        return String(decoding: text, as: UTF8.self)
    }

    /// Returns the bytes; nil if the text is not hexadecimal.
    package static func bytes(_ text: String) -> [UInt8]? {
        let digits = text.utf8.map(digit)
        guard digits.count.isMultiple(of: 2), !digits.contains(nil) else { return nil }
        return stride(from: 0, to: digits.count, by: 2).map { (digits[$0] ?? 0) << 4 | (digits[$0 + 1] ?? 0) }
    }

    package static func digit(_ letter: UInt8) -> UInt8? {
        switch letter {
        case 0x30...0x39: letter - 0x30
        case 0x41...0x46: letter - 0x41 + 10
        case 0x61...0x66: letter - 0x61 + 10
        default: nil
        }
    }
}

extension BinaryInteger {
    /// Returns the digits of a number that is not negative, with zeros before them up to a width.
    package func zeroPadded(_ width: Int, radix: Int = 10) -> String {
        let digits = String(self, radix: radix)
        return String(repeating: "0", count: Swift.max(0, width - digits.utf8.count)) + digits
    }
}

/// Decodes percent-encoded bytes (`%HH`).
package enum PercentEncoding {
    /// Replaces each `%HH` by its byte.
    /// - Returns: nil if a `%` is not followed by two hexadecimal digits.
    package static func decoded(_ text: some Sequence<UInt8>) -> [UInt8]? {
        var bytes: [UInt8] = []
        var rest = text.makeIterator()
        while let byte = rest.next() {
            guard byte == UInt8(ascii: "%") else {
                bytes.append(byte)
                continue
            }
            guard let high = rest.next().flatMap(HexText.digit), let low = rest.next().flatMap(HexText.digit) else {
                return nil
            }
            bytes.append(high << 4 | low)
        }
        return bytes
    }
}

extension Unicode.Scalar {
    /// Whether a terminal would interpret the character instead of printing it. True for control characters, and for
    /// characters that change the direction of text (Unicode Standard Annex 9, section 2).
    package var steersTerminal: Bool {
        switch value {
        case 0..<0x20, 0x7F...0x9F, 0x061C, 0x200E, 0x200F, 0x202A...0x202E, 0x2066...0x2069: true
        default: false
        }
    }
}
