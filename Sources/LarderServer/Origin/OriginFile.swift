import Platform

/// The larder's file `ORIGINS`: which database has which origin. A line of text for each, and at its end the checksum of all
/// before it. Replaced by rename.
struct OriginFile {
    static let fileName = "ORIGINS"
    static let fileBytesMax = 16 << 20
    private static let head = "larder-origins 1\n"

    enum Defect: Error {
        case damaged
    }

    /// By the names of their databases.
    var settings: [String: OriginSettings] = [:]

    var bytes: [UInt8] {
        var text = Self.head
        for (name, origin) in settings.sorted(by: { $0.key < $1.key }) {
            text += ([name] + origin.words).joined(separator: " ") + "\n"
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
            let words = line.split(separator: " ").map(String.init)
            guard let name = words.first, words.count > 1,
                let origin = try? OriginSettings(words: Array(words.dropFirst()))
            else { throw .damaged }
            settings[name] = origin
        }
    }

    private static func checksum(_ text: String) -> String {
        String(Array(text.utf8).withUnsafeBytes(CRC64.checksum), radix: 16)
    }
}
