import LarderEngine

// Asynchronous forms of the reading calls. They answer from memory on the caller's thread; Larder's own threads read
// the disk and wait for commits. The calls behave and throw like their synchronous forms.

extension CacheReading {
    // MARK: One entry

    /// Runs ``value(_:forKey:fillCache:)-(_,CacheKey,_)`` without blocking the calling thread.
    public func value<Value: Decodable>(
        _ type: Value.Type = Value.self, forKey key: some CacheKey, fillCache: Bool = true
    ) async throws(LarderError) -> Value? {
        let source = source
        return try await source.ownModelForTask(type, try source.key(key, "get"), fillCache: fillCache)
    }

    /// Like the call above, for `Sendable` models, which several callers may share: the decoded model of an entry in
    /// memory is kept.
    @inlinable public func value<Value: Decodable & Sendable>(
        _ type: Value.Type = Value.self, forKey key: some CacheKey, fillCache: Bool = true
    ) async throws(LarderError) -> Value? {
        try await source.sharedModelForTask(type, key, fillCache: fillCache)
    }

    /// Runs ``bytes(forKey:fillCache:)`` without blocking the calling thread.
    public func bytes(forKey key: some CacheKey, fillCache: Bool = true) async throws(LarderError) -> [UInt8]? {
        let source = source
        return try await source.recordForTask(try source.key(key, "get"), fillCache: fillCache).map {
            Array($0.payload)
        }
    }

    /// Runs ``contains(_:)`` without blocking the calling thread.
    public func contains(_ key: some CacheKey) async throws(LarderError) -> Bool {
        let source = source
        return try await source.recordForTask(try source.key(key, "contains"), "contains") != nil
    }

    /// Runs ``info(forKey:)`` without blocking the calling thread.
    public func info(forKey key: some CacheKey) async throws(LarderError) -> EntryInfo? {
        try await source.infoForTask(try source.key(key, "info"))
    }

    /// Runs ``timeToLive(forKey:)`` without blocking the calling thread.
    public func timeToLive(forKey key: some CacheKey) async throws(LarderError) -> TimeToLive? {
        try await info(forKey: key).flatMap { $0.isExpired ? nil : $0.left }
    }

    /// Runs ``tags(forKey:)`` without blocking the calling thread.
    public func tags(forKey key: some CacheKey) async throws(LarderError) -> [String]? {
        let source = source
        return try await source.recordForTask(try source.key(key, "tags"), "tags").map {
            TagRules.texts($0.tags?.all ?? [])
        }
    }

    // MARK: Many entries

    /// Runs ``values(_:forKeys:fillCache:)`` without blocking the calling thread.
    public func values<Key: CacheKey & Hashable, Value: Decodable>(
        _ type: Value.Type = Value.self, forKeys keys: some Sequence<Key>, fillCache: Bool = true
    ) async throws(LarderError) -> [Key: Value] {
        let keys = Array(keys)
        return Self.dictionary(keys, try await source.modelsForTask(type, keys, fillCache: fillCache))
    }

    /// Like the call above, for `Sendable` models, which several callers may share.
    public func values<Key: CacheKey & Hashable, Value: Decodable & Sendable>(
        _ type: Value.Type = Value.self, forKeys keys: some Sequence<Key>, fillCache: Bool = true
    ) async throws(LarderError) -> [Key: Value] {
        let keys = Array(keys)
        return Self.dictionary(keys, try await source.sharedModelsForTask(type, keys, fillCache: fillCache))
    }

    /// Runs ``values(_:forKeys:notFound:fillCache:)`` without blocking the calling thread.
    public func values<Value: Decodable>(
        _ type: Value.Type = Value.self, forKeys keys: some Sequence<some CacheKey>, notFound: Value,
        fillCache: Bool = true
    ) async throws(LarderError) -> [Value] {
        try await source.modelsForTask(type, Array(keys), fillCache: fillCache).map { $0 ?? notFound }
    }

    /// Like the call above, for `Sendable` models, which several callers may share.
    public func values<Value: Decodable & Sendable>(
        _ type: Value.Type = Value.self, forKeys keys: some Sequence<some CacheKey>, notFound: Value,
        fillCache: Bool = true
    ) async throws(LarderError) -> [Value] {
        try await source.sharedModelsForTask(type, Array(keys), fillCache: fillCache).map { $0 ?? notFound }
    }

    /// Runs ``count()`` without blocking the calling thread.
    public func count() async throws(LarderError) -> Int {
        try await BlockingWork.run { () throws(LarderError) in try self.count() }
    }

    /// Runs ``keys(_:)`` without blocking the calling thread.
    public func keys(_ options: EntryOptions = EntryOptions()) async throws(LarderError) -> [String] {
        try await BlockingWork.run { () throws(LarderError) in try self.keys(options) }
    }
}

extension CacheSnapshot {
    /// Runs ``close()`` without blocking the calling thread.
    public func close() async { await BlockingWork.run { self.close() } }
}
