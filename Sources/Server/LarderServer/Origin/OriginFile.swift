import LarderPlatform

/// The origins of all databases in their stored format: one line of text per database, then the checksum of the
/// preceding text. The text is stored in the ledger, the larder's internal database, under the name `factName`. Earlier
/// versions stored it in the file `ORIGINS`.
struct OriginFile {
    static let factName = "origins"
    static let fileName = "ORIGINS"
    static let fileBytesMax = 16 << 20
    private static let since = "SINCE"
    private static let head = "larder-origins 1\n"

    enum Defect: Error {
        case damaged
    }

    /// The settings of each origin, by the name of its database.
    var settings: [String: OriginSettings] = [:]

    var bytes: [UInt8] {
        var text = Self.head
        for (name, origin) in settings.sorted(by: { $0.key < $1.key }) {
            text += ([name] + origin.words + Self.words(since: origin.since)).joined(separator: " ") + "\n"
        }
        return Array((text + "crc64 " + Self.checksum(text) + "\n").utf8)
    }

    init() {}

    init(parsing bytes: [UInt8]) throws(Defect) {
        guard let text = String(validating: bytes, as: UTF8.self), text.hasPrefix(Self.head), text.hasSuffix("\n")
        else { throw .damaged }
        var lines = text.split(separator: "\n", omittingEmptySubsequences: false).dropLast()
        guard let last = lines.popLast() else { throw .damaged }
        let body = lines.map { $0 + "\n" }.joined()
        guard last == "crc64 " + Self.checksum(body) else { throw .damaged }
        for line in lines.dropFirst() {
            var words = line.split(separator: " ").map(String.init)
            var since: Int64 = 0
            if words.count > 3, words[words.count - 2] == Self.since {
                guard let instant = Int64(words[words.count - 1]) else { throw .damaged }
                since = instant
                words.removeLast(2)
            }
            guard let name = words.first, words.count > 1,
                var origin = try? OriginSettings(words: Array(words.dropFirst()))
            else { throw .damaged }
            origin.since = since
            settings[name] = origin
        }
    }

    private static func words(since: Int64) -> [String] { since > 0 ? [Self.since, "\(since)"] : [] }

    private static func checksum(_ text: String) -> String {
        String(Array(text.utf8).withUnsafeBytes(CRC64.checksum), radix: 16)
    }
}
