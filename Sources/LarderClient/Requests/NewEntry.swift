// Entries to store, as both clients prepare them: the value, the lifetime and the tags in the daemon's syntax.

import LarderRESP

/// An entry to store: its encoded value, and its validated lifetime and tags. A value type.
struct NewEntry: Sendable {
    let key: [UInt8]
    let bytes: [UInt8]
    let codec: Codec
    let policy: EntryPolicy.Checked
    let tags: CheckedTags

    /// Encodes a model.
    /// - Throws: `encode`; `invalidArgument` for a value that the daemon would not accept, an invalid lifetime or
    ///   invalid tags.
    init(_ model: some Encodable, _ codec: ModelCodec, _ key: [UInt8], _ policy: EntryPolicy, _ tags: [String])
        throws(LarderClientError)
    {
        let (bytes, codec) = try RemoteCoding.encode(model, codec, key: key)
        try self.init(bytes: bytes, key, policy, tags, codec)
    }

    /// Takes bytes to store unchanged. Errors as for models.
    init(
        bytes: [UInt8], _ key: [UInt8], _ policy: EntryPolicy, _ tags: [String], _ codec: Codec = .raw
    ) throws(LarderClientError) {
        try RemoteCoding.check(valueBytes: bytes.count, key: key)
        self.key = key
        self.bytes = bytes
        self.codec = codec
        self.policy = try policy.checked("SET", key: key)
        self.tags = try CheckedTags(tags, key: key)
    }

    /// Returns whether both entries are stored with the same options.
    func hasOptions(of other: NewEntry) -> Bool { policy == other.policy && tags == other.tags && codec == other.codec }

    /// Returns the request that stores the entry. Its result is whether the condition held.
    /// - Parameters:
    ///   - condition: words of SET, such as NX, or IFEQ and a value; none to store the entry in any case.
    ///   - keepsTags: whether an entry without tags keeps the tags of the entry that it replaces.
    /// - Throws: `invalidArgument` for tags that the server would ignore.
    func request(for server: ServerKind, if condition: [[UInt8]] = [], keepsTags: Bool = false)
        throws(LarderClientError) -> Request<Bool>
    {
        try tags.check(for: server, key: key)
        var words = words(for: server)
        // With EntryPolicy.keep the entry keeps its tags anyway.
        if keepsTags, tags == .none, policy.lifetime != .keep, server.isLarder { words += wordList("KEEPTAGS") }
        return Request(words + condition, key: key, expects: condition.isEmpty ? "OK" : "OK or null") { reply in
            switch reply {
            case .simpleString("OK"): true
            case .null where !condition.isEmpty: false
            default: nil
            }
        }
    }

    /// Returns the request of a compare and swap: stores an entry, or removes the key for nil, if the stored value is
    /// still `previous`. The entry keeps its tags unless it has new ones.
    /// - Returns: nil if there was no value, and there is none to store.
    static func replacing(_ previous: [UInt8]?, with entry: NewEntry?, _ key: [UInt8], for server: ServerKind)
        throws(LarderClientError) -> Request<Bool>?
    {
        guard let previous else { return try entry?.request(for: server, if: wordList("NX")) }
        guard let entry else { return .remove(key, ifEqual: previous) }
        return try entry.request(for: server, if: wordList("IFEQ") + [previous], keepsTags: true)
    }

    /// Returns the words of SET. Redis supports neither `CODEC` nor `POLICY`, so it receives a policy in milliseconds.
    /// The tags must have been checked for this server.
    func words(for server: ServerKind) -> [[UInt8]] {
        var words = [Array("SET".utf8), key, bytes]
        words += policy.words(for: server)
        if server.isLarder, codec != .raw { words += wordList("CODEC", codec.description) }
        return words + tags.words
    }
}

extension EntryPolicy {
    /// Returns the validated policy.
    /// - Throws: `invalidArgument` for an invalid lifetime.
    func checked(_ operation: String, _ database: String? = nil, key: [UInt8]) throws(LarderClientError) -> Checked {
        do throws(Impossible) {
            return try checked()
        } catch {
            throw LarderClientError(
                .invalidArgument, error.message, operation: operation, database: database, key: printableKey(key))
        }
    }
}

extension EntryPolicy.Checked {
    /// Returns the words for SET and MSETEX that set the lifetime. Redis has no policies, so it receives a time in
    /// milliseconds, which the client has shortened by the random jitter. Redis receives no grace, because Redis keeps
    /// no entry after the deadline.
    func words(for server: ServerKind) -> [[UInt8]] {
        guard server.isLarder else { return redisWords }
        return lifetimeWords + (grace.map { wordList("GRACE", EntryPolicy.graceText($0)) } ?? [])
            + (jitter.map { wordList("JITTER", "\($0)") } ?? [])
    }

    private var lifetimeWords: [[UInt8]] {
        switch lifetime {
        case .governed: []
        case .keep: wordList("KEEPTTL")
        case .policy(let policy): wordList("POLICY", policy.description)
        // The server refuses 0, so send 1, which is in the past too.
        case .until(let instant): wordList("PXAT", "\(max(1, instant))")
        }
    }

    private var redisWords: [[UInt8]] {
        guard case .policy(let policy) = lifetime else { return lifetimeWords }
        return policy.intervalMilliseconds.map {
            wordList("PX", "\(Jitter.shortened($0, by: jitter ?? 0))")
        } ?? []
    }
}

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
