import LarderClient
import LarderPlatform
import LarderVocabulary

/// A client connection of the daemon: an element of the response to `/api/clients`.
struct ClientReport: Encodable {
    let id: String
    let name: String
    let database: String
    let command: String
    let age: Double
    let idle: Double
    let outputBytes: Double

    private static let countMax = 200

    /// Returns the 200 most recently active connections, most recent first.
    static func all(_ link: DaemonLink) throws(LarderClientError) -> [ClientReport] {
        let text = try link.command("CLIENT", "LIST").string ?? ""
        let all = text.split(separator: "\n").map { line in
            var fields: [Substring: Substring] = [:]
            for word in line.split(separator: " ") {
                let pair = word.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
                if pair.count == 2 { fields[pair[0]] = pair[1] }
            }
            func number(_ name: Substring) -> Double { fields[name].flatMap { Double($0) } ?? 0 }
            func word(_ name: Substring) -> String { String(fields[name] ?? "") }
            return ClientReport(
                id: word("id"), name: word("name"), database: word("db"), command: word("cmd"), age: number("age"),
                idle: number("idle"), outputBytes: number("omem"))
        }
        return Array(all.sorted { $0.idle < $1.idle }.prefix(countMax))
    }
}

/// A command of the slow log: an element of the response to `/api/slow`.
struct SlowReport: Encodable {
    let time: Int64
    let seconds: Double
    /// The first words of the command in printable form.
    let words: [String]
    let client: String

    private static let countMax = "32"
    private static let wordsMax = 6

    static func newest(_ link: DaemonLink) throws(LarderClientError) -> [SlowReport] {
        SlowCommand.read(try link.command("SLOWLOG", "GET", countMax)).map { command in
            let words = command.words.prefix(wordsMax).map { printableKey($0) }
            return SlowReport(
                time: command.seconds, seconds: Double(command.microseconds) / 1_000_000,
                words: words + (command.words.count > wordsMax ? ["…"] : []), client: command.clientName)
        }
    }
}

/// Bytes that may be text: a key or a value.
struct BytesReport: Encodable {
    /// The key or value as text. Nil if it is not UTF-8; a value is also nil if it contains control characters.
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
