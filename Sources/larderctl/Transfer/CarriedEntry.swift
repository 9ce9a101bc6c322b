import LarderClient

/// An entry with all its metadata, for exports, imports and listings.
struct CarriedEntry {
    var database: String
    var key: [UInt8]
    var value: [UInt8]
    /// When the entry was stored, in milliseconds since 1970.
    var storedAt: Int64
    var rule: DeadlineRule
    /// When the entry expires in the larder it was read from, in milliseconds since 1970; nil for never.
    var deadline: Int64?
    /// The grace in milliseconds; nil to use the database's grace.
    var grace: Int64?
    /// The name of the codec; for a codec without a name, its number.
    var codec = Codec.raw.description
    var tags: [[UInt8]] = []

    /// The maximum length of a key in a larder, in bytes.
    static let keyBytesMax = 65_536

    /// Returns the command PLACE that stores the entry in the selected database.
    /// - Parameter keepsExisting: whether a fresh entry under the same key is kept, even if it is older.
    func placing(keepsExisting: Bool) -> [[UInt8]] {
        var words = [Array("PLACE".utf8), key, value, Array("STOREDAT".utf8), Array("\(storedAt)".utf8)]
        func add(_ texts: String...) { words += texts.map { Array($0.utf8) } }
        if keepsExisting { add("NX") }
        switch rule {
        case .governed: break
        case .own(let deadline): add("PXAT", "\(max(1, deadline))")
        case .ownNever: add("NEVER")
        }
        if let grace { add("GRACE", grace == 0 ? "0" : TimeText.seconds(grace)) }
        if codec != Codec.raw.description { add("CODEC", codec) }
        if !tags.isEmpty {
            add("TAGS", "\(tags.count)")
            words += tags
        }
        return words
    }
}

/// Reads the entries of a daemon's databases in the order of their keys, in steps of up to 1000. A reader can continue
/// after any key, also on another connection.
struct EntryReader {
    let client: BlockingLarderClient
    let prefix: [UInt8]

    /// Calls `body` with all entries after a key, step by step. The database must be selected.
    func forEachStep(_ database: String, after key: [UInt8]? = nil, _ body: ([CarriedEntry]) throws -> Void) throws {
        var after = key
        repeat {
            let step = try step(database, after: after)
            try body(step.entries)
            after = step.next
        } while after != nil
    }

    /// Reads the next entries after a key.
    /// - Returns: the entries, and the key after which to continue; nil at the end of the database.
    private func step(_ database: String, after key: [UInt8]?) throws(LarderClientError)
        -> (entries: [CarriedEntry], next: [UInt8]?)
    {
        var words = [Array("ENTRIES".utf8), Array("COUNT".utf8), Array("1000".utf8)]
        if let key { words += [Array("AFTER".utf8), key] }
        if !prefix.isEmpty { words += [Array("PREFIX".utf8), prefix] }
        let reply = try client.command(bytes: words)
        if let text = reply.errorMessage { throw LarderClientError.server(text, operation: "ENTRIES") }
        let wrong = LarderClientError.unexpectedReply(to: "ENTRIES", "a key and a list of entries")
        guard let parts = reply.elements, parts.count == 2, let list = parts[1].elements else { throw wrong }
        let entries = list.compactMap { Self.entry($0, database) }
        guard entries.count == list.count else { throw wrong }
        return (entries, parts[0].isNull ? nil : parts[0].bytes)
    }

    private static func entry(_ reply: RESPValue, _ database: String) -> CarriedEntry? {
        guard let fields = reply.elements, fields.count >= 8, let key = fields[0].bytes, let value = fields[1].bytes,
            let storedAt = fields[2].int, let word = fields[3].string, let deadline = fields[4].int,
            let grace = fields[5].int, let codec = fields[6].string, let tags = fields[7].elements,
            let rule = DeadlineRule(word, deadline: deadline)
        else { return nil }
        return CarriedEntry(
            database: database, key: key, value: value, storedAt: storedAt, rule: rule,
            deadline: deadline < 0 ? nil : deadline, grace: grace < 0 ? nil : grace, codec: codec,
            tags: tags.compactMap(\.bytes))
    }
}

extension DeadlineRule {
    /// - Parameter deadline: the deadline in milliseconds since 1970. For the rule `own`, it must not be negative.
    init?(_ name: String, deadline: Int64) {
        switch name {
        case "governed": self = .governed
        case "never": self = .ownNever
        case "own" where deadline >= 0: self = .own(deadline)
        default: return nil
        }
    }

    /// The name of the rule in the replies to META and ENTRIES, and in exports.
    var name: String {
        switch self {
        case .governed: "governed"
        case .own: "own"
        case .ownNever: "never"
        }
    }
}
