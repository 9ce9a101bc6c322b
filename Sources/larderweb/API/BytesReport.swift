/// Bytes that may be text: keys and values.
struct BytesReport: Encodable {
    /// Nil if they are not UTF-8.
    let text: String?
    /// All of them as hexadecimal digits; nil if that is said by the text alone.
    let hex: String?

    /// A key: always with its digits, by which it is asked for again.
    init(key: [UInt8]) {
        text = String(validating: key, as: UTF8.self)
        hex = HexText.text(key)
    }

    private static let binaryMax = 4_096

    init(value: [UInt8]) {
        text = Self.text(value)
        hex = text == nil ? HexText.text(value.prefix(Self.binaryMax)) : nil
    }

    /// The text, also if its last character was cut.
    private static func text(_ bytes: [UInt8]) -> String? {
        (0..<4).lazy.compactMap { String(validating: bytes.dropLast($0), as: UTF8.self) }.first.flatMap { text in
            text.unicodeScalars.contains { $0.value < 0x20 && !"\t\n\r".unicodeScalars.contains($0) } ? nil : text
        }
    }
}
