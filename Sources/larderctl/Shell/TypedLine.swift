import LarderRESP

/// The line that the user has typed, up to the cursor: the complete words and the current word.
struct TypedLine {
    /// The complete words, without quotes.
    private(set) var words: [[UInt8]] = []
    /// The typed part of the current word, without quotes; empty after a space. Nil if it cannot be parsed, for example
    /// because text follows a closing quote.
    private(set) var current: [UInt8]? = []
    /// The number of typed characters of the current word, including quotes.
    private(set) var currentLength = 0

    init(_ text: String) {
        let bytes = Array(text.utf8)
        var start: Int?
        var quote: UInt8?
        var index = 0
        while index < bytes.count {
            let byte = bytes[index]
            if let open = quote {
                if byte == UInt8(ascii: "\\") { index += 1 } else if byte == open { quote = nil }
            } else if byte == 0x20 || byte == 0x09 {
                if let begin = start { words += InlineWords.words(of: bytes[begin..<index]) ?? [[]] }
                start = nil
            } else {
                if start == nil { start = index }
                if byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "'") { quote = byte }
            }
            index += 1
        }
        guard let start else { return }
        let typed = bytes[start...]
        current = InlineWords.words(of: Array(typed) + (quote.map { [$0] } ?? []))?.first
        currentLength = String(decoding: typed, as: UTF8.self).unicodeScalars.count
    }

    /// Returns a word as it must be typed: in quotes if necessary.
    /// - Parameter isWhole: whether a space follows the word. If not, the closing quote is omitted.
    static func typed(_ word: String, isWhole: Bool) -> String {
        let needsQuotes = word.isEmpty || word.unicodeScalars.contains { " \t\"'".unicodeScalars.contains($0) }
        guard needsQuotes else { return word + (isWhole ? " " : "") }
        let quoted = TypedReply.quoted(Array(word.utf8))
        return isWhole ? quoted + " " : String(quoted.dropLast())
    }
}
