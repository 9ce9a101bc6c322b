import LarderEngine

/// Everything that can be read, from a ``Cache`` as from a ``CacheSnapshot``.
///
/// - Expired entries are never handed out: entry and value are nil from the deadline on. An enumeration judges an entry
///   when it comes to it: until its next step that entry can be asked for its value, even if it expires meanwhile.
/// - Reads see everything that was written before, by any thread, and wait until it has reached the promised durability.
/// - Each call that may read from the disk has two forms of one name. The synchronous one blocks its thread. The one for
///   asynchronous code, which Swift takes by itself there, answers what memory has on the caller's thread and leaves the
///   rest to threads of its own: nothing blocks Swift's cooperative pool.
/// - All calls throw ``LarderError``: ``LarderError/Code/closed`` after `Cache.close()`, ``LarderError/Code/deleted``
///   once the database was deleted, ``LarderError/Code/io`` and ``LarderError/Code/damaged`` when the disk fails,
///   ``LarderError/Code/invalidArgument`` for a key of more than 65,536 bytes.
///
/// Thread-safe.
public protocol CacheReading: Sendable {
    /// Where the reading calls read from.
    var source: CacheSource { get }
}

extension CacheReading {
    /// The database's name.
    public var name: String { source.database.name }

    /// What entries without a rule of their own follow now.
    public var policy: UpdatePolicy { source.database.policy }

    // MARK: One entry

    /// The model stored under a key; nil when there is none or it expired.
    ///
    /// Decoded anew with every read: the model is the caller's own. Of a model that is `Sendable`, which the compiler
    /// sees, another form of this call is used: it keeps the decoded model of a hot entry, and another read of it costs a
    /// lookup (see ``CacheOptions/decodedModels``). A public type is `Sendable` only if it says so, and generic code only
    /// uses that form for a type parameter of which it says so.
    /// - Parameters:
    ///   - type: what to decode. May be left out where the context says it.
    ///   - key: the entry's key.
    ///   - fillCache: whether what is read from the disk stays in the block cache. Off for data that is read once.
    /// - Throws: ``LarderError/Code/decoding``, naming key and type, when something else is stored there, unless
    ///   ``CacheOptions/onDecodingFailure`` says otherwise. Entries that were stored as raw bytes can be asked for as
    ///   `[UInt8]`, `Data` or, if they are UTF-8, `String`; for other types they are taken for JSON, which is what
    ///   other programs store.
    @inlinable public func value<Value: Decodable>(
        _ type: Value.Type = Value.self, forKey key: some CacheKey, fillCache: Bool = true
    ) throws(LarderError) -> Value? {
        try source.ownModel(type, key, fillCache: fillCache)
    }

    /// As ``value(_:forKey:fillCache:)-(_,CacheKey,_)``, for models that may be shared: of a hot entry the decoded model
    /// is kept, handed out again, and another read of it costs a lookup.
    @inlinable public func value<Value: Decodable & Sendable>(
        _ type: Value.Type = Value.self, forKey key: some CacheKey, fillCache: Bool = true
    ) throws(LarderError) -> Value? {
        try source.sharedModel(type, key, fillCache: fillCache)
    }

    /// As `value(_:forKey:fillCache:)`: `try cache["reader", as: Reader.self]`. There is no setter: in Swift it could
    /// not throw, and a failed write must not pass in silence.
    public subscript<Value: Decodable>(key: some CacheKey, as type: Value.Type) -> Value? {
        @inlinable get throws(LarderError) { try value(type, forKey: key) }
    }

    /// As the subscript above, for models that may be shared.
    public subscript<Value: Decodable & Sendable>(key: some CacheKey, as type: Value.Type) -> Value? {
        @inlinable get throws(LarderError) { try value(type, forKey: key) }
    }

    /// The stored bytes of a key, whatever codec made them; nil when there are none or they expired.
    @inlinable public func bytes(forKey key: some CacheKey, fillCache: Bool = true) throws(LarderError) -> [UInt8]? {
        let source = source
        return try key.withKeyBytes { source.bytes($0, fillCache: fillCache) }.get()
    }

    /// Whether there is a fresh entry under a key, whatever it holds.
    public func contains(_ key: some CacheKey) throws(LarderError) -> Bool {
        let source = source
        return try source.record(try source.key(key, "contains"), "contains") != nil
    }

    /// What is known of an entry besides its value, which is not decoded: when it was stored, its age, its deadline.
    /// Nil when there is no fresh entry.
    public func info(forKey key: some CacheKey) throws(LarderError) -> EntryInfo? {
        let source = source
        let now = source.database.now()
        return try source.record(try source.key(key, "info"), "info", now: now).map {
            source.info($0.header, byteCount: $0.payloadCount, now: now)
        }
    }

    /// How long an entry still stays fresh; nil when there is no fresh entry.
    public func timeToLive(forKey key: some CacheKey) throws(LarderError) -> TimeToLive? {
        try info(forKey: key)?.left
    }

    // MARK: Many entries

    /// The models stored under several keys, as they are at one instant. Keys without a fresh entry are left out; of
    /// two keys that Swift holds equal although their bytes differ, a dictionary has room for one.
    public func values<Key: CacheKey & Hashable, Value: Decodable>(
        _ type: Value.Type = Value.self, forKeys keys: some Sequence<Key>, fillCache: Bool = true
    ) throws(LarderError) -> [Key: Value] {
        let keys = Array(keys)
        return Self.dictionary(keys, try source.ownModels(type, keys, fillCache: fillCache))
    }

    /// As the call above, for models that may be shared: those of hot entries cost a lookup each.
    public func values<Key: CacheKey & Hashable, Value: Decodable & Sendable>(
        _ type: Value.Type = Value.self, forKeys keys: some Sequence<Key>, fillCache: Bool = true
    ) throws(LarderError) -> [Key: Value] {
        let keys = Array(keys)
        return Self.dictionary(keys, try source.sharedModels(type, keys, fillCache: fillCache))
    }

    static func dictionary<Key: Hashable, Value>(_ keys: [Key], _ values: [Value?]) -> [Key: Value] {
        var found: [Key: Value] = [:]
        found.reserveCapacity(keys.count)
        for (key, value) in zip(keys, values) {
            if let value { found[key] = value }
        }
        return found
    }

    /// The models stored under several keys, as they are at one instant, in the order of the keys; where there is no
    /// fresh entry, `notFound`.
    public func values<Value: Decodable>(
        _ type: Value.Type = Value.self, forKeys keys: some Sequence<some CacheKey>, notFound: Value,
        fillCache: Bool = true
    ) throws(LarderError) -> [Value] {
        try source.ownModels(type, Array(keys), fillCache: fillCache).map { $0 ?? notFound }
    }

    /// As the call above, for models that may be shared: those of hot entries cost a lookup each.
    public func values<Value: Decodable & Sendable>(
        _ type: Value.Type = Value.self, forKeys keys: some Sequence<some CacheKey>, notFound: Value,
        fillCache: Bool = true
    ) throws(LarderError) -> [Value] {
        try source.sharedModels(type, Array(keys), fillCache: fillCache).map { $0 ?? notFound }
    }

    /// How many entries there are. Reads the headers of all of them.
    /// - Parameter includingExpired: also those that have expired and were not swept yet, which costs less.
    public func count(includingExpired: Bool = false) throws(LarderError) -> Int {
        let source = source
        return try source.whileOpen("count") { (_) throws(LarderError) in
            guard let snapshot = source.snapshot else {
                return try source.database.count(includingExpired: includingExpired)
            }
            return try snapshot.count(includingExpired: includingExpired)
        }
    }

    /// The entries in the order of their keys' bytes, read lazily: nothing happens before the sequence is asked, and
    /// values are read and decoded only when they are asked for. What it costs to begin: see ``EntrySequence``.
    ///
    /// ```swift
    /// for try await entry in cache.entries(of: Reader.self, from: "a", to: "m") { print(entry.key, try entry.value()) }
    /// ```
    public func entries<Value: Decodable>(of type: Value.Type, _ options: EntryOptions) -> EntrySequence<Value> {
        EntrySequence(source: source, options: options)
    }

    /// As ``entries(of:_:)``, with options in words.
    /// - Parameters:
    ///   - type: the model's type.
    ///   - from: the lower bound, itself included; nil for none.
    ///   - to: the upper bound, itself excluded; nil for none.
    ///   - prefix: only keys that begin with it.
    ///   - backward: from the last key to the first.
    ///   - limit: the most entries to hand out; nil for all.
    public func entries<Value: Decodable>(
        of type: Value.Type, from: (any CacheKey)? = nil, to: (any CacheKey)? = nil, prefix: any CacheKey = "",
        backward: Bool = false, limit: Int? = nil
    ) -> EntrySequence<Value> {
        let options = EntryOptions(prefix: prefix, from: from, to: to, backward: backward, limit: limit)
        return EntrySequence(source: source, options: options)
    }

    /// The keys in the order of their bytes, values unread. What it costs to begin: see ``EntrySequence``.
    /// - Throws: ``LarderError/Code/decoding`` at a key that is not UTF-8 and so is no `String`;
    ///   ``EntrySequence/enumerate(_:)`` shows the bytes of such keys.
    public func keys(_ options: EntryOptions = EntryOptions()) throws(LarderError) -> [String] {
        try EntrySequence<Never>(source: source, options: options).keys()
    }
}
