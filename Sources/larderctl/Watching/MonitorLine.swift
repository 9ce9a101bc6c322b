import LarderRESP

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
        guard let words = InlineWords.words(of: bytes[(end + 1)...]) else { return nil }
        self.words = words
    }

    var json: JSONText {
        ["time": Double(time)?.json ?? time.json, "database": database, "client": client, "words": words]
    }
}
