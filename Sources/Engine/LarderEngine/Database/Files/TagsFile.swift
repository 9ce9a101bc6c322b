import LarderPlatform

/// The file `<database>/TAGS`: which tags were purged. A purge appends a line; so the file is text of one line for each
/// tag of a purge, and each line ends with the checksum of its beginning:
/// ```
/// larder-tags 1 2f1a0b3c
/// hard af63dc4c8601ec8c 4611686018427387905 0a1b2c3d
/// soft af63dc4c8601ec8c 4611686018427387906 1700000000000 1b2c3d4e
/// floor 4611686018427387900 2c3d4e5f
/// ```
struct TagsFile {
    static let name = "TAGS"
    static let formatVersion = 1
    /// The longest file that is read: it is made anew long before.
    static let bytesMax = 64 << 20

    private let path: String

    init(directory: String) { path = directory + "/" + Self.name }

    // MARK: Lines

    /// A purge of one tag or of everything with tags.
    enum Line: Equatable {
        case hard(tag: UInt64, sequence: UInt64)
        case soft(tag: UInt64, sequence: UInt64, at: Int64)
        case floor(sequence: UInt64)

        fileprivate var body: String {
            switch self {
            case .hard(let tag, let sequence): "hard \(tag.hexadecimal()) \(sequence)"
            case .soft(let tag, let sequence, let at): "soft \(tag.hexadecimal()) \(sequence) \(at)"
            case .floor(let sequence): "floor \(sequence)"
            }
        }

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

    static func text(_ lines: [Line]) -> String { lines.map { line($0.body) }.joined() }

    static var head: String { line("larder-tags \(formatVersion)") }

    // MARK: Reading

    /// What a file says.
    enum Content: Equatable {
        case none
        case lines([Line])
        /// It cannot be used. Some purge may be lost, so nothing with tags may be served that was stored before.
        case damaged(String)
        case newer(Int)
    }

    /// Reads the file. An incomplete last line is a purge that was never acknowledged, and is cut off.
    func read() throws(FileError) -> Content {
        guard let bytes = try FileSystem.read(path, bytesMax: Self.bytesMax) else { return .none }
        let (content, length) = Self.parse(bytes)
        if case .lines = content, length < bytes.count { try FileSystem.truncate(path, to: length) }
        return content
    }

    /// - Returns: the content, and how many bytes count.
    static func parse(_ bytes: [UInt8]) -> (Content, length: Int) {
        let length = (bytes.lastIndex(of: 0x0A) ?? -1) + 1
        guard let text = String(validating: bytes[..<length], as: UTF8.self) else {
            return (.damaged("it is not text"), length)
        }
        var lines: [Line] = []
        for (number, line) in text.split(separator: "\n", omittingEmptySubsequences: false).dropLast().enumerated() {
            var words = line.split(separator: " ", omittingEmptySubsequences: false)
            let sum = words.popLast()
            let body = words.joined(separator: " ")
            guard let sum, Self.line(body) == body + " " + sum + "\n" else {
                return (.damaged("the checksum of line \(number + 1) does not match"), length)
            }
            if number == 0 {
                guard words.count == 2, words[0] == "larder-tags", let version = Int(words[1]), version > 0 else {
                    return (.damaged("its first line is not 'larder-tags' and a version"), length)
                }
                if version > formatVersion { return (.newer(version), length) }
                continue
            }
            guard let line = Line(words) else { return (.damaged("line \(number + 1) says nothing"), length) }
            lines.append(line)
        }
        if length == 0 { return (.damaged("it has no first line"), length) }
        return (.lines(lines), length)
    }

    // MARK: Writing

    /// Makes the file without lines, durably, if it is not there.
    func make() throws(FileError) { if !FileSystem.exists(path) { try replace(by: []) } }

    /// Why lines were not added.
    struct NotAdded: Error {
        let cause: FileError
        /// Whether they could not be cut off again, and may count for a later process.
        let mayCount: Bool

        var description: String { cause.description + (mayCount ? "; it may count for a later process" : "") }
    }

    /// Adds lines, durably: all or, after an error, none, unless the error says that they may count.
    func append(_ lines: [Line]) throws(NotAdded) {
        let before = FileSystem.size(path)
        do throws(FileError) {
            guard FileSystem.exists(path) else { return try replace(by: lines) }
            try FileSystem.appendFile(path, Array(Self.text(lines).utf8))
        } catch {
            let isCutOff = (try? FileSystem.truncate(path, to: before)) != nil
            throw NotAdded(cause: error, mayCount: !isCutOff && FileSystem.exists(path))
        }
    }

    /// Makes the file anew.
    func replace(by lines: [Line]) throws(FileError) {
        if let unsynced = try FileSystem.replace(path, with: Array((Self.head + Self.text(lines)).utf8)) {
            throw unsynced
        }
    }
}

extension TagPurges {
    /// Everything, for a file that is made anew.
    var lines: [TagsFile.Line] {
        var lines: [TagsFile.Line] = floor > 0 ? [.floor(sequence: floor)] : []
        forEach { tag, note in
            if note.hard > 0 { lines.append(.hard(tag: tag, sequence: note.hard)) }
            if note.soft > 0 { lines.append(.soft(tag: tag, sequence: note.soft, at: note.softAt)) }
        }
        return lines
    }

    /// The purges in a file; nil if there are none.
    /// - Parameter now: the larder's time. It may have gone back since a purge, with the clock and the last mark of the
    ///   time; what the purge made stale stays so.
    static func read(_ lines: [TagsFile.Line], now: Int64 = .max) -> TagPurges? {
        lines.reduce(into: nil) { purges, line in
            let former = purges ?? TagPurges()
            purges =
                switch line {
                case .hard(let tag, let sequence): former.adding([tag], sequence, softAt: nil)
                case .soft(let tag, let sequence, let at): former.adding([tag], sequence, softAt: min(at, now))
                case .floor(let sequence): former.raising(to: sequence)
                }
        }
    }
}
