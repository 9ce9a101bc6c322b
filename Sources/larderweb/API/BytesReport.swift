import LarderPlatform

/// Bytes that may be text: a key or a value.
struct BytesReport: Encodable {
    /// The key or value as text; nil if it is not UTF-8, or is a value that contains control characters.
    let text: String?
    /// For a key, all bytes as hexadecimal digits; for a value without ``text``, its first 4,096 bytes. Nil for a value
    /// with ``text``.
    let hex: String?

    /// Creates the report of a key. It always includes the hexadecimal digits, which identify the key in later
    /// requests.
    init(key: [UInt8]) {
        text = String(validating: key, as: UTF8.self)
        hex = HexText.text(key)
    }

    private static let binaryMax = 4_096

    init(value: [UInt8]) {
        text = Self.text(value)
        hex = text == nil ? HexText.text(value.prefix(Self.binaryMax)) : nil
    }

    /// Returns the bytes as text; nil if they are not UTF-8 or contain control characters. Drops an incomplete last
    /// character, because the end of a long value was cut off.
    private static func text(_ bytes: [UInt8]) -> String? {
        (0..<4).lazy.compactMap { String(validating: bytes.dropLast($0), as: UTF8.self) }.first.flatMap { text in
            text.unicodeScalars.contains { $0.value < 0x20 && !"\t\n\r".unicodeScalars.contains($0) } ? nil : text
        }
    }
}
