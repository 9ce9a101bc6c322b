import LarderRESP
import LarderVocabulary

/// A parsed reply to CHANGES.
struct FeedReply {
    /// An entry with its metadata.
    struct Entry {
        let key: [UInt8]
        let value: [UInt8]
        /// When the entry was stored, in milliseconds since 1970.
        let storedAt: Int64
        let rule: String
        /// When the entry expires, in milliseconds since 1970; -1 for never.
        let deadline: Int64
        /// How long the entry is kept after its deadline, in milliseconds; -1 for the database's grace.
        let grace: Int64
        /// The name of the codec, or the number of a codec without a name.
        let codec: String
        let tags: [[UInt8]]

        /// The codec of the value.
        var storedCodec: Codec { Codec(name: codec) ?? UInt8(codec).map { Codec(rawValue: $0) } ?? .raw }
    }

    enum Change {
        case stored(Entry)
        case removed(key: [UInt8])
        case purged
        case purgedPrefix([UInt8])
        case purgedTags([[UInt8]])
    }

    struct Item {
        let change: Change
        let sequence: Int64
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
        if let text = reply.errorMessage { throw LarderClientError.server(text, operation: "CHANGES") }
        let fields = try ReplyFields(reply, of: "CHANGES")
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
            let sequence = fields[1].int, let version = fields[2].string
        else { return nil }
        let change: Change
        switch kind {
        case "stored":
            guard let entry = entry(fields[3...]) else { return nil }
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
        return Item(change: change, sequence: sequence, version: version)
    }

    private static func entry(_ fields: ArraySlice<RESPValue>) -> Entry? {
        let fields = Array(fields)
        guard fields.count >= 8, let key = fields[0].bytes, let value = fields[1].bytes,
            let storedAt = fields[2].int, let rule = fields[3].string, let deadline = fields[4].int,
            let grace = fields[5].int, let codec = fields[6].string, let tags = fields[7].elements
        else { return nil }
        return Entry(
            key: key, value: value, storedAt: storedAt, rule: rule, deadline: deadline, grace: grace, codec: codec,
            tags: tags.compactMap(\.bytes))
    }

    /// Returns the command that requests changes.
    static func words(
        since position: String, prefix: [UInt8], count: Int, blockMilliseconds: Int
    ) -> [[UInt8]] {
        var words = wordList("CHANGES", "SINCE", position, "COUNT", "\(count)")
        if !prefix.isEmpty { words += [Array("PREFIX".utf8), prefix] }
        if blockMilliseconds > 0 { words += wordList("BLOCK", "\(blockMilliseconds)") }
        return words
    }
}

extension FeedReply.Entry {
    /// Returns the command that stores the entry in the selected database.
    func placing(_ version: String?, over: Int64?) -> [[UInt8]] {
        var words = [Array("PLACE".utf8), key, value] + wordList("STOREDAT", "\(storedAt)")
        switch rule {
        case "own": words += wordList("PXAT", "\(max(1, deadline))")
        case "never": words += wordList("NEVER")
        default: break
        }
        if grace == 0 {
            words += wordList("GRACE", "0")
        } else if grace > 0 {
            words += wordList("GRACE", Self.seconds(grace))
        }
        if codec != "raw" { words += wordList("CODEC", codec) }
        if !tags.isEmpty { words += wordList("TAGS", "\(tags.count)") + tags }
        if let version { words += wordList("VERSION", version) }
        if version != nil, let over { words += wordList("OVER", "\(over)") }
        return words
    }

    /// Returns milliseconds as a decimal number of seconds.
    private static func seconds(_ milliseconds: Int64) -> String {
        let fraction = String(milliseconds % 1000)
        return "\(milliseconds / 1000)." + String(repeating: "0", count: 3 - fraction.count) + fraction
    }
}
