/// A parsed line of MONITOR: `1700000000.123456 [0 /run/larder.sock:0] "GET" "key"`.
struct MonitorLine {
    let time: String
    let database: String
    let client: String
    let words: [[UInt8]]

    /// Parses a line.
    /// - Returns: nil if it has another form.
    init?(_ text: String) {
        let bytes = Array(text.utf8)
        guard let space = bytes.firstIndex(of: 0x20), bytes.dropFirst(space + 1).first == UInt8(ascii: "["),
            let end = bytes.firstIndex(of: UInt8(ascii: "]"))
        else { return nil }
        time = String(decoding: bytes[..<space], as: UTF8.self)
        let inner = String(decoding: bytes[(space + 2)..<end], as: UTF8.self)
        let parts = inner.split(separator: " ", maxSplits: 1)
        database = parts.first.map(String.init) ?? ""
        client = parts.count > 1 ? String(parts[1]) : ""
        guard let words = Self.words(bytes[(end + 1)...]) else { return nil }
        self.words = words
    }

    /// Parses quoted words with escapes. Returns nil if the text is malformed.
    private static func words(_ bytes: ArraySlice<UInt8>) -> [[UInt8]]? {
        var words: [[UInt8]] = []
        var word: [UInt8]?
        var index = bytes.startIndex
        while index < bytes.endIndex {
            let byte = bytes[index]
            index += 1
            guard var open = word else {
                if byte == UInt8(ascii: "\"") { word = [] } else if byte != 0x20 { return nil }
                continue
            }
            if byte == UInt8(ascii: "\"") {
                words.append(open)
                word = nil
                continue
            }
            if byte == UInt8(ascii: "\\") {
                guard let (escaped, next) = escaped(bytes, index) else { return nil }
                open.append(escaped)
                index = next
            } else {
                open.append(byte)
            }
            word = open
        }
        return word == nil ? words : nil
    }

    private static func escaped(_ bytes: ArraySlice<UInt8>, _ index: Int) -> (UInt8, Int)? {
        guard index < bytes.endIndex else { return nil }
        let simple: [UInt8: UInt8] = [
            UInt8(ascii: "n"): 0x0A, UInt8(ascii: "r"): 0x0D, UInt8(ascii: "t"): 0x09, UInt8(ascii: "a"): 0x07,
            UInt8(ascii: "b"): 0x08,
        ]
        guard bytes[index] == UInt8(ascii: "x") else { return (simple[bytes[index]] ?? bytes[index], index + 1) }
        guard index + 2 < bytes.endIndex,
            let value = UInt8(String(decoding: bytes[(index + 1)...(index + 2)], as: UTF8.self), radix: 16)
        else { return nil }
        return (value, index + 3)
    }

    var json: JSONText {
        .object([
            ("time", Double(time).map { .double($0) } ?? .text(time)), ("database", .text(database)),
            ("client", .text(client)), ("words", .array(words.map { .bytes($0) })),
        ])
    }
}
