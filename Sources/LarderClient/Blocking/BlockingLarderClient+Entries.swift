// Entries: read, write, remove, inspect, list.

extension BlockingLarderClient {
    // MARK: Reading

    /// Returns the model stored under a key; nil if there is none or it has expired.
    /// - Throws: `decode`, naming the type and the key, if the value is of another type.
    public func value<Value: Decodable>(_ type: Value.Type = Value.self, forKey key: some CacheKey)
        throws(LarderClientError) -> Value?
    {
        let key = key.keyBytes
        return try decoded(type, try bytes(forKey: key), key)
    }

    /// Returns the models of the keys that have a fresh entry, read at one instant.
    /// - Throws: `decode`, naming the type and the key, if a value is of another type.
    public func values<Key: CacheKey & Hashable, Value: Decodable>(
        _ type: Value.Type = Value.self, forKeys keys: some Sequence<Key>
    ) throws(LarderClientError) -> [Key: Value] {
        let keys = Array(keys)
        guard !keys.isEmpty else { return try session.nothing("MGET", [:]) }
        var models: [Key: Value] = [:]
        for (key, bytes) in zip(keys, try perform(.getAll(keys.map(\.keyBytes)))) {
            models[key] = try decoded(type, bytes, key.keyBytes)
        }
        return models
    }

    /// Returns one model for each key, in the order of the keys; `notFound` for a key without a fresh entry. All keys
    /// are read at one instant.
    public func values<Value: Decodable>(
        _ type: Value.Type = Value.self, forKeys keys: some Sequence<some CacheKey>, notFound: Value
    ) throws(LarderClientError) -> [Value] {
        let keys = keys.map(\.keyBytes)
        let found = try values(type, forKeys: keys)
        return keys.map { found[$0] ?? notFound }
    }

    /// Decodes stored bytes. Tries the likely codec first, and requests the entry's codec from the daemon if that
    /// fails.
    func decoded<Value: Decodable>(_ type: Value.Type, _ bytes: [UInt8]?, _ key: [UInt8])
        throws(LarderClientError) -> Value?
    {
        guard let bytes else { return nil }
        if let model = RemoteCoding.decodeByGuess(type, from: bytes, codec) { return model }
        return try named { () throws(LarderClientError) in
            let stored = try server().isLarder ? try info(forKey: key)?.codec : nil
            return try RemoteCoding.decode(type, from: bytes, codec, reported: stored, key: key, "GET")
        }
    }

    /// Decodes stored bytes. Returns nil if that fails: the caller then makes a new value.
    func decodable<Value: Decodable>(_ type: Value.Type, _ bytes: [UInt8]?, _ key: [UInt8])
        throws(LarderClientError) -> Value?
    {
        do throws(LarderClientError) {
            return try decoded(type, bytes, key)
        } catch {
            guard error.code == .decode else { throw error }
            return nil
        }
    }

    /// Encodes a model, and validates the options with which it is stored.
    func newEntry(_ value: some Encodable, _ key: [UInt8], _ policy: EntryPolicy = .database, _ tags: [String] = [])
        throws(LarderClientError) -> NewEntry
    {
        try named { () throws(LarderClientError) in try NewEntry(value, codec, key, policy, tags) }
    }

    /// Stores an entry; parameters as for ``NewEntry/request(for:if:keepsTags:)``.
    /// - Returns: whether the condition held, so that the entry was stored.
    @discardableResult
    func put(_ entry: NewEntry, if condition: [[UInt8]] = [], keepsTags: Bool = false) throws(LarderClientError) -> Bool
    {
        try named { () throws(LarderClientError) in
            try perform { (server) throws(LarderClientError) in
                try entry.request(for: server, if: condition, keepsTags: keepsTags)
            }
        }
    }

    /// Returns the stored bytes of a key; nil if there are none or they have expired.
    public func bytes(forKey key: some CacheKey) throws(LarderClientError) -> [UInt8]? {
        try perform(.get(key.keyBytes))
    }

    /// Returns whether there is a fresh entry under a key, whatever its value.
    public func contains(_ key: some CacheKey) throws(LarderClientError) -> Bool {
        try perform(.contains(key.keyBytes))
    }

    /// Returns the metadata of an entry without reading its value: the time at which it was stored, its age, its
    /// deadline. Nil if there is no fresh entry.
    public func info(forKey key: some CacheKey) throws(LarderClientError) -> EntryInfo? {
        try perform(.info(key.keyBytes))
    }

    /// Returns the remaining lifetime of an entry; nil if there is no fresh entry.
    public func timeToLive(forKey key: some CacheKey) throws(LarderClientError) -> TimeToLive? {
        try perform(.timeToLive(key.keyBytes))
    }

    /// Returns the tags of an entry, in the order in which they were specified; nil if there is no fresh entry. Omits
    /// tags that are not UTF-8, which other programs may have stored. Needs larderd.
    public func tags(forKey key: some CacheKey) throws(LarderClientError) -> [String]? {
        try perform(Request<[String]?>.tags(key.keyBytes))
    }

    /// Like ``tags(forKey:)``, including tags that are not UTF-8.
    package func tagBytes(forKey key: some CacheKey) throws(LarderClientError) -> [[UInt8]]? {
        try perform(Request<[[UInt8]]?>.tagBytes(key.keyBytes))
    }

    /// Returns the number of fresh entries in the database. If the database was changed since the last count, the
    /// daemon reads all entries to count them.
    public func count() throws(LarderClientError) -> Int { Int(clamping: try perform(.count)) }

    // MARK: Writing

    /// Stores a model under a key, and replaces an existing entry. The client's codec encodes the model: by default as
    /// JSON, which other programs can read. The Larder library stores the same bytes.
    /// - Parameters:
    ///   - value: the model.
    ///   - key: the entry's key.
    ///   - policy: how long this entry stays fresh. By default it follows the database's policy; with
    ///     ``EntryPolicy/keep`` it keeps the deadline rule of the entry that it replaces.
    ///   - tags: labels for removing groups of entries with `removeAll(tagged:soft:)`: at most 16 different ones, each
    ///     of 1 to 128 bytes of UTF-8 without NUL. By default none, or with ``EntryPolicy/keep`` the tags of the
    ///     replaced entry. Needs larderd.
    /// - Throws: `encode` if the codec cannot encode the model; `invalidArgument` for an invalid lifetime or invalid
    ///   tags, before anything is sent.
    public func set(
        _ value: some Encodable, forKey key: some CacheKey, policy: EntryPolicy = .database, tags: [String] = []
    ) throws(LarderClientError) {
        try put(try newEntry(value, key.keyBytes, policy, tags))
    }

    /// Stores bytes unchanged under a key, and replaces an existing entry. Parameters and errors as for
    /// ``set(_:forKey:policy:tags:)``.
    public func setBytes(
        _ bytes: [UInt8], forKey key: some CacheKey, policy: EntryPolicy = .database, tags: [String] = []
    ) throws(LarderClientError) {
        try named { () throws(LarderClientError) in
            try put(try NewEntry(bytes: bytes, key.keyBytes, policy, tags))
        }
    }

    /// Removes an entry. It is not an error if there is none.
    /// - Returns: whether there was a fresh entry.
    @discardableResult
    public func remove(_ key: some CacheKey) throws(LarderClientError) -> Bool {
        try perform(.remove([key.keyBytes])) > 0
    }

    /// Removes several entries in one step: all or none. Without keys, nothing is sent.
    /// - Returns: the number of fresh entries that were removed.
    @discardableResult
    public func remove(_ keys: some Sequence<some CacheKey>) throws(LarderClientError) -> Int {
        let keys = keys.map(\.keyBytes)
        guard !keys.isEmpty else { return try session.nothing("DEL", 0) }
        return Int(clamping: try perform(.remove(keys)))
    }

    // MARK: Keys

    /// Returns the keys of the database's fresh entries, each once, in no particular order.
    ///
    /// Includes every key that exists during the whole call; keys stored or removed meanwhile may be missing. Omits
    /// keys that are not UTF-8. ``forEachKey(matching:_:)`` includes those too, and is better for many keys.
    /// - Parameter pattern: a glob pattern: `*` matches any characters, `?` one character, `[a-c]` one of a, b and c;
    ///   nil for all keys.
    public func keys(matching pattern: String? = nil) throws(LarderClientError) -> [String] {
        var next: Request<ScanStep>? = .scan(matching: pattern?.keyBytes)
        var seen: Set<[UInt8]> = []
        var keys: [String] = []
        while let request = next {
            let step = try perform(request)
            keys += step.texts(notIn: &seen)
            next = step.next
        }
        return keys
    }

    /// Calls `body` with each key that ``keys(matching:)`` finds, as bytes and including keys that are not UTF-8, until
    /// `body` returns false. Reads a few hundred keys per round trip. No lock is held in between: `body` may call the
    /// client.
    public func forEachKey(matching pattern: String? = nil, _ body: ([UInt8]) throws -> Bool) throws {
        try forEachKey(matching: pattern?.keyBytes, body)
    }

    /// Like ``forEachKey(matching:_:)``, with a pattern of any bytes. For larderctl, because words from a shell need
    /// not be UTF-8.
    package func forEachKey(matching pattern: [UInt8]?, _ body: ([UInt8]) throws -> Bool) throws {
        var next: Request<ScanStep>? = .scan(matching: pattern)
        while let request = next {
            let step = try perform(request)
            for key in step.keys where try !body(key) { return }
            next = step.next
        }
    }
}
