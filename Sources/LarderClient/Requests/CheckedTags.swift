/// The validated tags of an entry in the daemon's syntax. A value type.
struct CheckedTags: Hashable, Sendable {
    static let none = CheckedTags()

    private let bytes: [[UInt8]]

    private init() { bytes = [] }

    /// Validates the tags.
    /// - Throws: `invalidArgument` for invalid tags.
    init(_ tags: [String], key: [UInt8]) throws(LarderClientError) {
        if tags.isEmpty {
            bytes = []
            return
        }
        do throws(TagRules.Impossible) {
            bytes = try TagRules.checked(tags.map { Array($0.utf8) })
        } catch {
            throw LarderClientError(.invalidArgument, error.message, operation: "SET", key: printableKey(key))
        }
    }

    /// The words of SET and MSETEX that set the tags.
    var words: [[UInt8]] { bytes.isEmpty ? [] : wordList("TAGS", "\(bytes.count)") + bytes }

    /// Checks that the server supports the tags.
    /// - Throws: `invalidArgument` for tags if the server is not larderd. Other servers ignore tags, so the tags could
    ///   not be used to remove entries.
    func check(for server: ServerKind, key: [UInt8]) throws(LarderClientError) {
        guard !bytes.isEmpty, !server.isLarder else { return }
        throw LarderClientError(
            .invalidArgument,
            "the server does not support tags, because it is not larderd: store the entry without them",
            operation: "SET", key: printableKey(key))
    }

    /// Returns the words after `PURGE TAG`; none without tags.
    /// - Throws: `invalidArgument` for invalid tags.
    static func purged(_ tags: [[UInt8]], soft: Bool, _ database: String) throws(LarderClientError) -> [[UInt8]] {
        do throws(TagRules.Impossible) {
            let tags = try TagRules.checkedForPurge(tags)
            return soft && !tags.isEmpty ? tags + wordList("SOFT") : try hard(tags)
        } catch {
            throw LarderClientError(.invalidArgument, error.message, operation: "PURGE", database: database)
        }
    }

    /// Returns the words that remove entries instead of making them stale. The daemon reads `soft` as the option SOFT
    /// if it is the last of several words. So if the last tag is `soft`, another tag is repeated after it. A single
    /// word `soft` is read as a tag.
    private static func hard(_ tags: [[UInt8]]) throws(TagRules.Impossible) -> [[UInt8]] {
        func isOption(_ tag: [UInt8]) -> Bool {
            tag.count == 4 && zip(tag, "SOFT".utf8).allSatisfy { $0 & 0xDF == $1 }
        }
        guard tags.count > 1, let last = tags.last, isOption(last) else { return tags }
        guard let other = tags.first(where: { !isOption($0) }) else {
            throw TagRules.Impossible(message: "tags that are all spellings of 'soft' can be purged only one by one")
        }
        return tags + [other]
    }
}
