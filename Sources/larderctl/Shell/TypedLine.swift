import LarderRESP

/// A line of the shell up to the cursor, as far as it is typed: whole words, and the one that is being typed.
struct TypedLine {
    /// The words before, without quotes.
    private(set) var words: [[UInt8]] = []
    /// What is typed of the last word, without quotes; empty behind a blank. Nil if it cannot be told.
    private(set) var current: [UInt8]? = []
    /// How many characters that takes, quotes included.
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

    /// A word as it is typed: in quotes if it needs some.
    /// - Parameter isWhole: whether nothing is to follow; else the quotes stay open.
    static func typed(_ word: String, isWhole: Bool) -> String {
        let needsQuotes = word.isEmpty || word.unicodeScalars.contains { " \t\"'".unicodeScalars.contains($0) }
        guard needsQuotes else { return word + (isWhole ? " " : "") }
        let quoted = TypedReply.quoted(Array(word.utf8))
        return isWhole ? quoted + " " : String(quoted.dropLast())
    }
}
