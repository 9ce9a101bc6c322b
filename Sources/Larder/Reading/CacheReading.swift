import LarderEngine
import LarderModelQueries

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// The reading calls of a ``Cache`` and a ``CacheSnapshot``.
///
/// - Expired entries are never returned: the results are nil after the deadline. An enumeration checks each entry once,
///   when it reaches the entry; the value can be read until the next step.
/// - Reads see every earlier write, by any thread, and wait until that write has the promised durability.
/// - Each call that may read from the disk has two forms with one name. The synchronous form blocks its thread. In
///   asynchronous code Swift picks the asynchronous form. That form answers from memory on the caller's thread;
///   Larder's own threads do the rest, so that Swift's cooperative thread pool is never blocked.
/// - All calls throw ``LarderError``: ``LarderError/Code/closed`` after `Cache.close()`, ``LarderError/Code/deleted``
///   after the database was deleted, ``LarderError/Code/io`` and ``LarderError/Code/damaged`` if the disk fails,
///   ``LarderError/Code/invalidArgument`` for a key of more than 65,536 bytes.
///
/// Thread-safe.
public protocol CacheReading: BlockingQuerySource, AsyncQuerySource where QueryFailure == LarderError {
    /// The object through which the reading calls access the database.
    var source: CacheSource { get }
}

extension CacheReading {
    /// The database's name.
    public var name: String { source.database.name }

    /// The database's current policy, for entries without a policy of their own.
    public var policy: UpdatePolicy { source.database.policy }

    // MARK: Queries

    /// Returns a query of the models of one type: the fresh entries whose JSON matches its conditions.
    ///
    /// ```swift
    /// let keys = try books.query(Book.self).where(\.author, in: ["Bo", "Al"]).where(\.year, 1990..<2000).keys()
    /// ```
    /// Reads nothing before one of the calls of ``ModelQuery`` that return a result. In a snapshot, the result is of
    /// one moment, and no index is used. The query keeps this cache's larder open, but not after `close()`.
    public func query<Value: Codable & SendableMetatype>(_ type: Value.Type = Value.self) -> ModelQuery<Value, Self> {
        var runner = source.queryRunner
        runner.isOf = { [database = source.database] in ($0 as? any CacheReading)?.source.database === database }
        return ModelQuery(runner)
    }

    /// Returns a query with a predicate: see ``ModelQuery/where(_:)``.
    public func query<Value: Codable & SendableMetatype>(_ predicate: Predicate<Value>) -> ModelQuery<Value, Self> {
        query(Value.self).where(predicate)
    }

    // MARK: One entry

    /// Returns the model stored under a key; nil if there is no fresh entry.
    ///
    /// Every read decodes a new model for its caller. If the compiler knows that a model is `Sendable`, Swift picks
    /// another form of this call. That form keeps the decoded model of an entry in memory, so that the next read costs
    /// a lookup (see ``CacheOptions/decodedModels``). A public type is `Sendable` only if it is declared so. Generic
    /// code uses that form only if its type parameter is declared `Sendable`.
    /// - Parameters:
    ///   - type: the type to decode. May be omitted if the context determines it.
    ///   - key: the entry's key.
    ///   - fillCache: whether blocks that are read from the disk stay in the block cache. Set it to false for data that
    ///     is read once.
    /// - Throws: ``LarderError/Code/decoding``, with key and type, if the value is of another type, unless
    ///   ``CacheOptions/onDecodingFailure`` specifies otherwise. Entries stored as raw bytes can be read as `[UInt8]`,
    ///   `Data` or, if they are UTF-8, `String`; for other types they are decoded as JSON, the form of other programs.
    @inlinable public func value<Value: Decodable>(
        _ type: Value.Type = Value.self, forKey key: some CacheKey, fillCache: Bool = true
    ) throws(LarderError) -> Value? {
        try source.ownModel(type, key, fillCache: fillCache)
    }

    /// Like ``value(_:forKey:fillCache:)-(_,CacheKey,_)``, for `Sendable` models, which several callers may share. The
    /// decoded model of an entry in memory is kept, and later reads return it after a lookup.
    @inlinable public func value<Value: Decodable & Sendable>(
        _ type: Value.Type = Value.self, forKey key: some CacheKey, fillCache: Bool = true
    ) throws(LarderError) -> Value? {
        try source.sharedModel(type, key, fillCache: fillCache)
    }

    /// Like `value(_:forKey:fillCache:)`: `try cache["reader", as: Reader.self]`. There is no setter, because a setter
    /// cannot throw in Swift, and a failed write must not pass silently.
    public subscript<Value: Decodable>(key: some CacheKey, as type: Value.Type) -> Value? {
        @inlinable get throws(LarderError) { try value(type, forKey: key) }
    }

    /// Like the subscript above, for `Sendable` models, which several callers may share.
    public subscript<Value: Decodable & Sendable>(key: some CacheKey, as type: Value.Type) -> Value? {
        @inlinable get throws(LarderError) { try value(type, forKey: key) }
    }

    /// Returns the stored bytes of a key, whatever their codec; nil if there is no fresh entry.
    @inlinable public func bytes(forKey key: some CacheKey, fillCache: Bool = true) throws(LarderError) -> [UInt8]? {
        let source = source
        return try key.withKeyBytes { source.bytes($0, fillCache: fillCache) }.get()
    }

    /// Whether there is a fresh entry under a key, whatever its value.
    public func contains(_ key: some CacheKey) throws(LarderError) -> Bool {
        let source = source
        return try source.record(try source.key(key, "contains"), "contains") != nil
    }

    /// Returns the metadata of an entry without decoding its value: the time at which it was stored, its age, its
    /// deadline. Stale entries within their grace are included: see ``EntryInfo/isExpired``. Nil if there is no entry.
    /// A snapshot has fresh entries only.
    public func info(forKey key: some CacheKey) throws(LarderError) -> EntryInfo? {
        try source.info(try source.key(key, "info"))
    }

    /// Returns the remaining lifetime of an entry; nil if there is no fresh entry.
    public func timeToLive(forKey key: some CacheKey) throws(LarderError) -> TimeToLive? {
        try info(forKey: key).flatMap { $0.isExpired ? nil : $0.left }
    }

    /// Returns the tags of an entry, in the order in which they were specified; nil if there is no fresh entry. Omits
    /// tags that are not UTF-8, which clients of the daemon can store.
    public func tags(forKey key: some CacheKey) throws(LarderError) -> [String]? {
        let source = source
        return try source.record(try source.key(key, "tags"), "tags").map { TagRules.texts($0.tags?.all ?? []) }
    }

    // MARK: Many entries

    /// Returns the models stored under several keys, at one instant. Keys without a fresh entry are missing from the
    /// result. If Swift considers two keys equal although their bytes differ, the dictionary has only one of them.
    public func values<Key: CacheKey & Hashable, Value: Decodable>(
        _ type: Value.Type = Value.self, forKeys keys: some Sequence<Key>, fillCache: Bool = true
    ) throws(LarderError) -> [Key: Value] {
        let keys = Array(keys)
        return Self.dictionary(keys, try source.ownModels(type, keys, fillCache: fillCache))
    }

    /// Like the call above, for `Sendable` models, which several callers may share: models of entries in memory cost a
    /// lookup each.
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

    /// Returns the models stored under several keys at one instant, in the order of the keys; `notFound` for a key
    /// without a fresh entry.
    public func values<Value: Decodable>(
        _ type: Value.Type = Value.self, forKeys keys: some Sequence<some CacheKey>, notFound: Value,
        fillCache: Bool = true
    ) throws(LarderError) -> [Value] {
        try source.ownModels(type, Array(keys), fillCache: fillCache).map { $0 ?? notFound }
    }

    /// Like the call above, for `Sendable` models, which several callers may share: models of entries in memory cost a
    /// lookup each.
    public func values<Value: Decodable & Sendable>(
        _ type: Value.Type = Value.self, forKeys keys: some Sequence<some CacheKey>, notFound: Value,
        fillCache: Bool = true
    ) throws(LarderError) -> [Value] {
        try source.sharedModels(type, Array(keys), fillCache: fillCache).map { $0 ?? notFound }
    }

    /// Returns the number of fresh entries. Reads the headers of all entries if LevelDB was written to since the last
    /// count.
    public func count() throws(LarderError) -> Int {
        let source = source
        return try source.whileOpen("count") { (_) throws(LarderError) in
            guard let snapshot = source.snapshot else { return try source.database.count(includingExpired: false) }
            return try snapshot.count(includingExpired: false)
        }
    }

    /// Returns the entries in the order of their keys' bytes, read lazily: nothing is read before the sequence is used,
    /// and values are read and decoded on request. For the costs see ``EntrySequence``.
    ///
    /// ```swift
    /// for try await entry in cache.entries(of: Reader.self, from: "a", to: "m") { print(entry.key, try entry.value()) }
    /// ```
    public func entries<Value: Decodable>(of type: Value.Type, _ options: EntryOptions) -> EntrySequence<Value> {
        EntrySequence(source: source, options: options)
    }

    /// Like ``entries(of:_:)``, with one parameter for each option.
    /// - Parameters:
    ///   - type: the model's type.
    ///   - from: the inclusive lower bound; nil for none.
    ///   - to: the exclusive upper bound; nil for none.
    ///   - prefix: the text or bytes with which keys must begin.
    ///   - backward: whether to enumerate from the last key to the first.
    ///   - limit: the maximum number of entries; nil for all.
    public func entries<Value: Decodable>(
        of type: Value.Type, from: (any CacheKey)? = nil, to: (any CacheKey)? = nil, prefix: any CacheKey = "",
        backward: Bool = false, limit: Int? = nil
    ) -> EntrySequence<Value> {
        let options = EntryOptions(prefix: prefix, from: from, to: to, backward: backward, limit: limit)
        return EntrySequence(source: source, options: options)
    }

    /// Returns the keys in the order of their bytes, without reading values. For the costs see ``EntrySequence``. Omits
    /// keys that are not UTF-8, because a `String` cannot hold them: ``EntrySequence/enumerate(_:)`` has their bytes.
    public func keys(_ options: EntryOptions = EntryOptions()) throws(LarderError) -> [String] {
        try EntrySequence<Never>(source: source, options: options).keys()
    }
}

/// A read-only view of a database at one instant, with all reading calls of ``Cache``.
///
/// - Later writes are not visible, but time passes: entries that expire are no longer returned, and changes of the
///   policy take effect.
/// - It keeps the larder open, and old files on the disk, until it is closed or released.
/// - After a purge or deletion of the database, the calls of the snapshot throw ``LarderError/Code/purged`` or
///   ``LarderError/Code/deleted``. After a failed write that made the larder reopen the database, they throw
///   ``LarderError/Code/invalidated``.
///
/// Thread-safe.
public final class CacheSnapshot: CacheReading {
    /// The object through which the reading calls access the database.
    public let source: CacheSource

    init(source: CacheSource) { self.source = source }

    /// Releases the larder and its files. Idempotent; later calls throw ``LarderError/Code/closed``.
    public func close() { source.close() }
}

// Filters with #Predicate. They read and decode every entry. An entry with a value of another type is an error or is
// skipped: see CacheOptions.onDecodingFailure.

extension EntrySequence {
    /// Returns only the entries whose model satisfies the predicate.
    public func filter(_ predicate: Predicate<Value>) -> EntrySequence {
        filter { entry in
            guard let value = try entry.valueIfAny() else { return false }
            return try predicate.evaluate(value)
        }
    }
}

extension CacheReading {
    /// Returns the keys of the models that satisfy the predicate: `try cache.keys(matching: #Predicate<Reader> {
    /// $0.book.price > 10 })`.
    public func keys<Value: Decodable>(
        matching predicate: Predicate<Value>, _ options: EntryOptions = EntryOptions()
    ) throws(LarderError) -> [String] {
        try entries(of: Value.self, options).filter(predicate).keys()
    }

    /// Returns the models that satisfy the predicate, by their keys.
    public func dictionary<Value: Decodable>(
        matching predicate: Predicate<Value>, _ options: EntryOptions = EntryOptions()
    ) throws(LarderError) -> [String: Value] {
        try entries(of: Value.self, options).filter(predicate).dictionary()
    }

    /// Runs ``keys(matching:_:)`` without blocking the calling thread.
    public func keys<Value: Decodable>(
        matching predicate: Predicate<Value>, _ options: EntryOptions = EntryOptions()
    ) async throws(LarderError) -> [String] {
        try await entries(of: Value.self, options).filter(predicate).keys()
    }

    /// Runs ``dictionary(matching:_:)`` without blocking the calling thread.
    public func dictionary<Value: Decodable>(
        matching predicate: Predicate<Value>, _ options: EntryOptions = EntryOptions()
    ) async throws(LarderError) -> [String: Value] {
        try await entries(of: Value.self, options).filter(predicate).dictionary()
    }
}
