// Entries as bytes: read, write, remove, ask about, list.

extension BlockingLarderClient {
    /// Stores bytes.
    /// - Parameters:
    ///   - key: the entry's name; an entry of that name is replaced, with its deadline.
    ///   - policy: how long this entry stays fresh. The default leaves it to the database's policy.
    public func setBytes(_ bytes: [UInt8], forKey key: String, policy: EntryPolicy = .database)
        throws(LarderClientError)
    {
        try store(bytes, forKey: Array(key.utf8), policy: policy, codec: nil)
    }

    /// The bytes of a fresh entry; nil when there is none.
    public func bytes(forKey key: String) throws(LarderClientError) -> [UInt8]? {
        try bytes(forKey: Array(key.utf8))
    }

    /// Removes entries, all in one step.
    /// - Returns: how many of them were there.
    @discardableResult
    public func remove(_ keys: String...) throws(LarderClientError) -> Int {
        try removeMany(keys)
    }

    /// Removes entries, all in one step. For no keys, nothing is sent.
    /// - Returns: how many of them were there.
    @discardableResult
    public func removeMany(_ keys: some Sequence<String>) throws(LarderClientError) -> Int {
        try removeMany(keys.map { Array($0.utf8) })
    }

    /// Whether there is a fresh entry of that name.
    public func contains(_ key: String) throws(LarderClientError) -> Bool {
        try perform(.contains(Array(key.utf8)))
    }

    /// How long an entry still has; nil when there is no fresh entry of that name.
    public func timeToLive(forKey key: String) throws(LarderClientError) -> LarderClient.TimeToLive? {
        try timeToLive(forKey: Array(key.utf8))
    }

    /// What the daemon knows about an entry; nil when there is no fresh entry of that name. The value is not read.
    public func info(forKey key: String) throws(LarderClientError) -> LarderClient.EntryInfo? {
        try info(forKey: Array(key.utf8))
    }

    /// The keys of the database's fresh entries, each once, in no particular order.
    ///
    /// Every key that is there from the beginning to the end is among them; of others it is not certain. Many keys are
    /// better taken as they come: ``forEachKey(matching:_:)``.
    /// - Parameter pattern: `*` stands for any characters, `?` for one, `[a-c]` for one of these; nil for all keys.
    /// - Throws: `decode` when a key is not UTF-8 text; ``forEachKey(matching:_:)`` gives such keys too.
    public func keys(matching pattern: String? = nil) throws(LarderClientError) -> [String] {
        var seen: Set<String> = []
        var cursor: [UInt8]?
        repeat {
            let step = try perform(.scan(from: cursor, matching: pattern.map { Array($0.utf8) }))
            for bytes in step.keys {
                guard let key = String(validating: bytes, as: UTF8.self) else {
                    throw LarderClientError(
                        .decode, "this key is not UTF-8 text: take keys as bytes with forEachKey", operation: "SCAN",
                        key: printableKey(bytes))
                }
                seen.insert(key)
            }
            cursor = step.next
        } while cursor != nil
        return Array(seen)
    }

    /// Gives the keys of the database's fresh entries to `body`, a few hundred per round trip, until it returns false.
    ///
    /// Every key that is there from the beginning to the end is given; of others it is not certain. The client is not
    /// held between round trips: `body` may call it.
    /// - Parameter pattern: as in ``keys(matching:)``.
    public func forEachKey(matching pattern: String? = nil, _ body: ([UInt8]) throws -> Bool) throws {
        try forEachKey(matching: pattern.map { Array($0.utf8) }, body)
    }
}

// Keys as bytes, for larderctl: what a shell passes need not be UTF-8.
extension BlockingLarderClient {
    package func store(
        _ value: [UInt8], forKey key: [UInt8], policy: EntryPolicy, codec: Codec?
    ) throws(LarderClientError) {
        let policy = try policy.checked("SET", key: key)
        try RemoteCoding.check(valueBytes: value.count, key: key)
        try perform { .set(value, forKey: key, policy: policy, codec: codec, server: $0) }
    }

    package func bytes(forKey key: [UInt8]) throws(LarderClientError) -> [UInt8]? { try perform(.get(key)) }

    package func removeMany(_ keys: [[UInt8]]) throws(LarderClientError) -> Int {
        guard !keys.isEmpty else {
            _ = try session.perform([], operation: "DEL")
            return 0
        }
        return Int(clamping: try perform(.remove(keys)))
    }

    package func timeToLive(forKey key: [UInt8]) throws(LarderClientError) -> LarderClient.TimeToLive? {
        try perform(.timeToLive(key))
    }

    package func info(forKey key: [UInt8]) throws(LarderClientError) -> LarderClient.EntryInfo? {
        try perform(.info(key))
    }

    package func forEachKey(matching pattern: [UInt8]?, _ body: ([UInt8]) throws -> Bool) throws {
        var cursor: [UInt8]?
        repeat {
            let step = try perform(.scan(from: cursor, matching: pattern))
            for key in step.keys where try !body(key) { return }
            cursor = step.next
        } while cursor != nil
    }
}
