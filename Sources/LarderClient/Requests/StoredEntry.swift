import LarderRESP
import LarderVocabulary

/// An entry with its metadata, as in the replies to CHANGES and ENTRIES. A value type.
package struct StoredEntry: Sendable {
    package let key: [UInt8]
    package let value: [UInt8]
    /// When the entry was stored, in milliseconds since 1970.
    package let storedAt: Int64
    /// The name of the rule for the deadline: see ``DeadlineRule/name``.
    package let rule: String
    /// When the entry expires, in milliseconds since 1970; -1 for never.
    package let deadline: Int64
    /// How long the entry is kept after its deadline, in milliseconds; -1 for the database's grace.
    package let grace: Int64
    /// The name of the codec, or the number of a codec without a name.
    package let codec: String
    package let tags: [[UInt8]]

    /// The maximum length of a key in a larder, in bytes.
    package static let keyBytesMax = 65_536

    package init(
        key: [UInt8], value: [UInt8], storedAt: Int64, rule: String, deadline: Int64, grace: Int64, codec: String,
        tags: [[UInt8]]
    ) {
        (self.key, self.value, self.storedAt, self.rule) = (key, value, storedAt, rule)
        (self.deadline, self.grace, self.codec, self.tags) = (deadline, grace, codec, tags)
    }

    /// Parses the fields of a reply; nil if they are malformed.
    init?(_ fields: [RESPValue], hasValue: Bool = true) {
        guard fields.count >= 8, let key = fields[0].bytes, let value = hasValue ? fields[1].bytes : [],
            let storedAt = fields[2].int, let rule = fields[3].string, let deadline = fields[4].int,
            let grace = fields[5].int, let codec = fields[6].string, let tags = fields[7].elements
        else { return nil }
        self.init(
            key: key, value: value, storedAt: storedAt, rule: rule, deadline: deadline, grace: grace, codec: codec,
            tags: tags.compactMap(\.bytes))
    }

    var storedCodec: Codec { Codec(name: codec) ?? UInt8(codec).map { Codec(rawValue: $0) } ?? .raw }

    /// Returns the command PLACE that stores the entry in the selected database.
    /// - Parameters:
    ///   - version: the version of the change; nil for an entry that is not replicated.
    ///   - over: with a version: up to this time, entries of the database lose conflicts.
    ///   - keepsExisting: whether a fresh entry under the same key is kept, even if it is older.
    package func placing(_ version: String? = nil, over: Int64? = nil, keepsExisting: Bool = false) -> [[UInt8]] {
        var words = [Array("PLACE".utf8), key, value] + wordList("STOREDAT", "\(storedAt)")
        if keepsExisting { words += wordList("NX") }
        switch rule {
        case "own": words += wordList("PXAT", "\(max(1, deadline))")
        case "never": words += wordList("NEVER")
        default: break
        }
        if grace >= 0 { words += wordList("GRACE", EntryPolicy.graceText(grace)) }
        if codec != Codec.raw.description { words += wordList("CODEC", codec) }
        if !tags.isEmpty { words += wordList("TAGS", "\(tags.count)") + tags }
        // VERSION and OVER must be the last words: see ConflictedChange.
        if let version { words += wordList("VERSION", version) }
        if version != nil, let over { words += wordList("OVER", "\(over)") }
        return words
    }
}
