// Entries to store, as prepared by both clients.

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
    func hasOptions(of other: NewEntry) -> Bool {
        policy == other.policy && tags == other.tags && codec == other.codec
    }

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

    /// Returns the condition of SET that the caller still has a lease; none for 0, which stands for no lease.
    static func lease(_ token: UInt64) -> [[UInt8]] { token == 0 ? [] : wordList("TOKEN", "\(token)") }

    /// Returns the words of SET. Redis supports neither `CODEC` nor `POLICY`, so it receives a policy in milliseconds.
    /// The tags must have been checked for this server.
    func words(for server: ServerKind) -> [[UInt8]] {
        var words = [Array("SET".utf8), key, bytes]
        words += policy.words(for: server)
        if server.isLarder, codec != .raw { words += wordList("CODEC", codec.description) }
        return words + tags.words
    }
}
