import LarderPlatform

/// The file `<database>/TAGS`, in which earlier versions kept the purges of tags that are now in the ``Ledger``. It is
/// read once, and removed. It is text with one line for each tag of a purge, each with a checksum at its end:
/// ```
/// larder-tags 1 2f1a0b3c
/// hard af63dc4c8601ec8c 4611686018427387905 0a1b2c3d
/// soft af63dc4c8601ec8c 4611686018427387906 1700000000000 1b2c3d4e
/// floor 4611686018427387900 2c3d4e5f
/// ```
struct TagsFile {
    static let name = "TAGS"
    static let formatVersion = 1
    /// The length of the longest file that is read, in bytes. Earlier versions rewrote the file long before it reached
    /// this size.
    static let bytesMax = 64 << 20

    private let path: String

    init(directory: String) { path = directory + "/" + Self.name }

    // MARK: Lines

    /// A purge of one tag, or of all entries that have tags.
    enum Line: Equatable {
        case hard(tag: UInt64, sequence: UInt64)
        case soft(tag: UInt64, sequence: UInt64, at: Int64)
        case floor(sequence: UInt64)

        fileprivate init?(_ words: [Substring]) {
            switch (words.first, words.count) {
            case ("hard", 3):
                guard let tag = UInt64(words[1], radix: 16), let sequence = UInt64(words[2]) else { return nil }
                self = .hard(tag: tag, sequence: sequence)
            case ("soft", 4):
                guard let tag = UInt64(words[1], radix: 16), let sequence = UInt64(words[2]), let at = Int64(words[3])
                else { return nil }
                self = .soft(tag: tag, sequence: sequence, at: at)
            case ("floor", 2):
                guard let sequence = UInt64(words[1]) else { return nil }
                self = .floor(sequence: sequence)
            default: return nil
            }
        }
    }

    private static func line(_ body: String) -> String {
        "\(body) \(UInt64(CRC32C.checksum(body.utf8)).hexadecimal(digits: 8))\n"
    }

    // MARK: Reading

    /// The result of reading the file.
    enum Content: Equatable {
        case none
        case lines([Line])
        /// The file cannot be used. Purges may be lost, so all existing entries with tags must become stale.
        case damaged(String)
        case newer(Int)
    }

    /// Reads the file. An incomplete last line is a purge that was never acknowledged, and is ignored. A last line that
    /// lacks only its line break is valid: its purge may have been acknowledged before the file was damaged.
    func read() throws(FileError) -> Content {
        try FileSystem.read(path, bytesMax: Self.bytesMax).map(Self.parse) ?? .none
    }

    func remove() throws(FileError) { try FileSystem.removeFile(path) }

    static func parse(_ bytes: [UInt8]) -> Content {
        let length = (bytes.lastIndex(of: 0x0A) ?? -1) + 1
        guard let text = String(validating: bytes[..<length], as: UTF8.self) else { return .damaged("it is not text") }
        let rest = bytes[length...]
        for tail in [rest, rest.dropLast()] where !tail.isEmpty {
            let content = parse(text: text + String(decoding: tail, as: UTF8.self) + "\n")
            if case .lines = content { return content }
        }
        return length == 0 ? .damaged("it has no first line") : parse(text: text)
    }

    private static func parse(text: String) -> Content {
        var lines: [Line] = []
        for (number, line) in text.split(separator: "\n", omittingEmptySubsequences: false).dropLast().enumerated() {
            var words = line.split(separator: " ", omittingEmptySubsequences: false)
            let sum = words.popLast()
            let body = words.joined(separator: " ")
            guard let sum, Self.line(body) == body + " " + sum + "\n" else {
                return .damaged("the checksum of line \(number + 1) does not match")
            }
            if number == 0 {
                guard words.count == 2, words[0] == "larder-tags", let version = Int(words[1]), version > 0 else {
                    return .damaged("its first line must be 'larder-tags' followed by a version")
                }
                if version > formatVersion { return .newer(version) }
                continue
            }
            guard let line = Line(words) else { return .damaged("line \(number + 1) is invalid") }
            lines.append(line)
        }
        return .lines(lines)
    }
}

extension TagPurges {
    /// Returns the purges in a file.
    /// - Parameter now: the larder's time. A soft purge with a later time counts as made now, so that its entries stay
    ///   stale. This happens if the clock was set back and the record of time was lost.
    static func read(_ lines: [TagsFile.Line], now: Int64 = .max) -> TagPurges {
        var content = Content()
        for line in lines {
            switch line {
            case .hard(let tag, let sequence): content.merge(Note(hard: sequence), of: tag)
            case .soft(let tag, let sequence, let at):
                content.merge(Note(soft: sequence, softAt: min(at, now)), of: tag)
            case .floor(let sequence): content.merge(Note(hard: sequence), of: nil)
            }
        }
        return TagPurges(content)
    }
}
