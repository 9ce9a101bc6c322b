import LarderPlatform

/// Makes bytes safe to show on a terminal. Otherwise a key or value could contain control sequences that move the
/// cursor, rename the window, or even enter text into the shell.
enum TerminalText {
    /// Escapes (`\n`, `\xHH`) control characters, changes of the text direction, and bytes that are not UTF-8.
    /// - Parameter keepsLines: whether line breaks and tabs are kept.
    static func escaped(_ bytes: [UInt8], keepsLines: Bool) -> [UInt8] {
        var text: [UInt8] = []
        text.reserveCapacity(bytes.count)
        var index = 0
        while index < bytes.count {
            let byte = bytes[index]
            let length = sequenceLength(bytes, index)
            if length > 1 {
                text.append(contentsOf: bytes[index..<index + length])
            } else if byte >= 0x20, byte < 0x7F {
                text.append(byte)
            } else if keepsLines,
                byte == 0x0A || byte == 0x09 || byte == 0x0D && bytes.dropFirst(index + 1).first == 0x0A
            {
                text.append(byte)
            } else {
                text += escape(byte).utf8
            }
            index += max(1, length)
        }
        return text
    }

    /// Returns the length in bytes of the UTF-8 character at an index. Returns 1 for ASCII, for characters that must be
    /// escaped, and for bytes that are not UTF-8.
    private static func sequenceLength(_ bytes: [UInt8], _ index: Int) -> Int {
        let byte = bytes[index]
        let length = byte >= 0xF0 ? 4 : byte >= 0xE0 ? 3 : byte >= 0xC2 ? 2 : 1
        guard length > 1, index + length <= bytes.count,
            let text = String(validating: bytes[index..<index + length], as: UTF8.self),
            let scalar = text.unicodeScalars.first, !scalar.steersTerminal
        else { return 1 }
        return length
    }

    private static func escape(_ byte: UInt8) -> String {
        switch byte {
        case 0x0A: "\\n"
        case 0x0D: "\\r"
        case 0x09: "\\t"
        default: "\\x" + HexText.text([byte])
        }
    }

    /// Escapes a text to be shown on one line.
    static func escaped(_ text: String) -> String {
        String(decoding: escaped(Array(text.utf8), keepsLines: false), as: UTF8.self)
    }
}
