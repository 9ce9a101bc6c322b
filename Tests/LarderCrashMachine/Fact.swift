import LarderEngine
import LarderServer

/// A setting of a larder that is not an entry. An acknowledged change of a fact is on disk at every durability level.
enum Fact: Hashable {
    /// The policy of a database.
    case policy(String)
    /// The libraries of functions.
    case functions
    /// The origin of a database.
    case origin(String)

    /// The value of a fact if there are no functions, or if the database has no origin.
    static let none = ""
}

/// Reads the daemon's facts from the ledger.
enum StoredFacts {
    /// The versions of the libraries in the payload of `FUNCTION DUMP`, in the order of their names.
    static func functions(_ payload: [UInt8]) throws -> String {
        try FunctionLibraries.texts(of: payload, bytesMax: 1 << 20).map { text in
            guard let library = FunctionVersion(text) else { throw Finding("a library is '\(Judge.text(text))'") }
            return library.description
        }.joined(separator: " ")
    }

    /// The origins, by the names of their databases.
    static func origins(_ bytes: [UInt8]) throws -> [String: String] {
        let lines = String(decoding: bytes, as: UTF8.self).split(separator: "\n")
        guard lines.first == "larder-origins 1", lines.last?.hasPrefix("crc64 ") == true else {
            throw Finding("the ledger has the origins \(lines)")
        }
        return Dictionary(
            lines.dropFirst().dropLast().map { line in
                let words = line.split(separator: " ")
                return (String(words[0]), words.dropFirst().joined(separator: " "))
            }
        ) { $1 }
    }
}

/// A version of a function library. The library's text contains the version number twice.
struct FunctionVersion: CustomStringConvertible {
    let library: String
    let version: Int

    init(_ library: String, _ version: Int) { (self.library, self.version) = (library, version) }

    /// - Returns: nil if the text differs from that of the version whose number it contains.
    init?(_ text: [UInt8]) {
        let lines = String(decoding: text, as: UTF8.self).split(separator: "\n")
        guard let name = lines.first?.split(separator: "=").last, lines.count > 1,
            let version = lines[1].split(separator: " ").last.flatMap({ Int($0) })
        else { return nil }
        self.init(String(name), version)
        guard self.text == String(decoding: text, as: UTF8.self) else { return nil }
    }

    var text: String {
        "#!lua name=\(library)\n-- version \(version)\n"
            + "redis.register_function('\(library)', function() return \(version) end)\n"
    }

    var description: String { "\(library):\(version)" }
}
