import LarderRESP
import LarderVocabulary

/// A parsed reply to CHANGES.
struct FeedReply {
    struct Item {
        let change: FeedChange<StoredEntry>
        let version: String

        /// The time of the change, in milliseconds since 1970.
        var time: Int64 { Int64(version.prefix { $0 != "-" }) ?? .max }
    }

    let position: String
    let state: String
    let reason: String?
    /// In a full pass: the range of keys whose entries this reply lists. `after` is the key before the range, nil for
    /// the start; `through` is the last key of the range, nil for the end.
    let range: (after: [UInt8]?, through: [UInt8]?)?
    let time: Int64
    let items: [Item]

    /// Parses a reply.
    /// - Throws: `server` for an error, `protocolViolation` for anything that is not a reply to CHANGES.
    init(_ reply: RESPValue) throws(LarderClientError) {
        let fields = try ReplyFields(try reply.checked("CHANGES"), of: "CHANGES")
        guard let changes = fields.value("changes")?.elements else { throw Self.wrong }
        position = try fields.string("position")
        state = try fields.string("state")
        time = try fields.integer("time")
        reason = fields.value("reason")?.string
        if let range = fields.value("range")?.elements, range.count == 2 {
            self.range = (range[0].bytes, range[1].bytes)
        } else {
            range = nil
        }
        var items: [Item] = []
        items.reserveCapacity(changes.count)
        for change in changes {
            guard let item = Self.item(change) else { throw Self.wrong }
            items.append(item)
        }
        self.items = items
    }

    private static var wrong: LarderClientError {
        LarderClientError.unexpectedReply(to: "CHANGES", "a map with changes")
    }

    private static func item(_ reply: RESPValue) -> Item? {
        guard let fields = reply.elements, fields.count >= 3, let kind = fields[0].string,
            fields[1].int != nil, let version = fields[2].string
        else { return nil }
        let change: FeedChange<StoredEntry>
        switch kind {
        case "stored":
            guard let entry = StoredEntry(Array(fields[3...])) else { return nil }
            change = .stored(entry)
        case "removed":
            guard fields.count > 3, let key = fields[3].bytes else { return nil }
            change = .removed(key: key)
        case "purged": change = .purged
        case "purged-prefix":
            guard fields.count > 3, let prefix = fields[3].bytes else { return nil }
            change = .purgedPrefix(prefix)
        case "purged-tags":
            guard fields.count > 3, let tags = fields[3].elements else { return nil }
            change = .purgedTags(tags.compactMap(\.bytes))
        default: return nil
        }
        return Item(change: change, version: version)
    }

    /// Returns the command that requests changes.
    static func words(since position: String, prefix: [UInt8], count: Int, blockMilliseconds: Int) -> [[UInt8]] {
        var words = wordList("CHANGES", "SINCE", position, "COUNT", "\(count)")
        if !prefix.isEmpty { words += [Array("PREFIX".utf8), prefix] }
        if blockMilliseconds > 0 { words += wordList("BLOCK", "\(blockMilliseconds)") }
        return words
    }
}
