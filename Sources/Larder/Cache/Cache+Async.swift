// swift-format-ignore-file: AmbiguousTrailingClosureOverload
// Some calls have one form for closures that await and one for closures that do not.

import LarderEngine

// Asynchronous forms of calls that may block for long. Models are encoded and decoded in the calling task; Larder's own
// threads do the rest, so that Swift's cooperative thread pool is never blocked. The calls behave and throw like their
// synchronous forms. They cannot be cancelled: a call that has started is completed.

extension Cache {
    // MARK: One entry

    /// Runs ``set(_:forKey:policy:tags:durability:)`` without blocking the calling thread.
    public func set(
        _ value: some Encodable, forKey key: some CacheKey, policy: EntryPolicy = .database,
        tags: [String] = [], durability: Durability? = nil
    ) async throws(LarderError) {
        _ = try await carryOut(try source.write(value, key, policy, tags, durability))
    }

    /// Runs ``setBytes(_:forKey:policy:tags:durability:)`` without blocking the calling thread.
    public func setBytes(
        _ bytes: [UInt8], forKey key: some CacheKey, policy: EntryPolicy = .database, tags: [String] = [],
        durability: Durability? = nil
    ) async throws(LarderError) {
        _ = try await carryOut(try source.write(bytes: bytes, key, policy, tags, durability))
    }

    /// Runs ``setIfAbsent(_:forKey:policy:tags:durability:)`` without blocking the calling thread.
    public func setIfAbsent(
        _ value: some Encodable, forKey key: some CacheKey, policy: EntryPolicy = .database,
        tags: [String] = [], durability: Durability? = nil
    ) async throws(LarderError) -> Bool {
        try await carryOut(try source.write(value, key, policy, tags, if: .absent, durability))
    }

    /// Runs ``setIfPresent(_:forKey:policy:tags:durability:)`` without blocking the calling thread.
    public func setIfPresent(
        _ value: some Encodable, forKey key: some CacheKey, policy: EntryPolicy = .database,
        tags: [String] = [], durability: Durability? = nil
    ) async throws(LarderError) -> Bool {
        try await carryOut(try source.write(value, key, policy, tags, if: .present, durability))
    }

    /// Runs ``replace(_:with:forKey:policy:tags:durability:)`` without blocking the calling thread.
    public func replace<Value: Encodable>(
        _ previous: Value, with value: Value, forKey key: some CacheKey, policy: EntryPolicy = .database,
        tags: [String] = [], durability: Durability? = nil
    ) async throws(LarderError) -> Bool {
        try await carryOut(
            try source.write(value, key, policy, tags, if: try source.holding(previous, key), durability))
    }

    private func carryOut(_ write: EntryWrite) async throws(LarderError) -> Bool {
        try await BlockingWork.run { () throws(LarderError) in try self.perform(write) }
    }

    /// Runs ``touch(_:policy:durability:)`` without blocking the calling thread.
    @discardableResult
    public func touch(_ key: some CacheKey, policy: EntryPolicy, durability: Durability? = nil)
        async throws(LarderError) -> Bool
    {
        let key = key.keyBytes
        return try await BlockingWork.run { () throws(LarderError) in
            try self.touch(key, policy: policy, durability: durability)
        }
    }

    /// Runs ``value(_:forKey:renewing:durability:)`` without blocking the calling thread.
    public func value<Value: Decodable>(
        _ type: Value.Type = Value.self, forKey key: some CacheKey, renewing policy: EntryPolicy,
        durability: Durability? = nil
    ) async throws(LarderError) -> Value? {
        let renewal = try renewal(key, policy)
        let record = try await BlockingWork.run { () throws(LarderError) in
            try self.renew(renewal, durability, isRead: true)
        }
        guard let record else { return nil }
        return try await source.decodeForTask(type, record, renewal.key)
    }

    /// Runs ``update(_:forKey:policy:tags:attempts:durability:_:)-(_,_,_,_,_,_,(Value?)->Result)`` without blocking the
    /// calling thread.
    @discardableResult
    public func update<Value: Codable, Result>(
        _ type: Value.Type = Value.self, forKey key: some CacheKey, policy: EntryPolicy = .keep, tags: [String] = [],
        attempts: Int? = nil, durability: Durability? = nil, _ body: (inout Value?) async throws -> Result
    ) async throws -> Result {
        let key = try source.key(key, "update")
        let update = try RunningUpdate(of: key, self, attempts)
        defer { update.end() }
        return try await exchange(key, "update", attempts, update) { record async throws in
            var model: Value?
            if let record { model = try await source.decodeForTask(type, record, key, isReplaceable: true) }
            let result = try await RunningUpdate.$current.withValue(update) { try await body(&model) }
            return (result, try source.write(model, in: record, key, policy, tags, durability))
        }
    }

    /// Runs ``exchange(_:_:_:_:_:)`` without blocking the calling thread.
    func exchange<Result>(
        _ key: Key, _ operation: String, _ attempts: Int? = nil, _ update: RunningUpdate? = nil,
        _ body: (Record?) async throws -> (result: Result, write: EntryWrite?)
    ) async throws -> Result {
        var runs = UpdateAttempts(most: attempts, limitMilliseconds: Self.updateMilliseconds)
        runs.update = update
        while true {
            let (result, write) = try await body(try await source.recordForTask(key, operation))
            guard let write else { return result }
            if try await carryOut(write) { return result }
            guard let rest = runs.rest() else { throw conflict(key, runs, operation) }
            // `Task.sleep` does not wait in a cancelled task. Yield instead, so that other tasks can run.
            if (try? await Task.sleep(nanoseconds: rest)) == nil { await Task.yield() }
        }
    }

    // Without the following form, Swift would choose the synchronous call for closures that do not await. That call
    // blocks.

    /// Like the call above, for a closure that does not await.
    @discardableResult
    public func update<Value: Codable, Result>(
        _ type: Value.Type = Value.self, forKey key: some CacheKey, policy: EntryPolicy = .keep, tags: [String] = [],
        attempts: Int? = nil, durability: Durability? = nil, _ body: (inout Value?) throws -> Result
    ) async throws -> Result {
        try await update(type, forKey: key, policy: policy, tags: tags, attempts: attempts, durability: durability) {
            (model: inout Value?) async throws in try body(&model)
        }
    }

    /// Runs ``increment(_:by:durability:)-(_,Int,_)`` without blocking the calling thread.
    @discardableResult
    public func increment(_ key: some CacheKey, by step: Int = 1, durability: Durability? = nil)
        async throws(LarderError) -> Int
    {
        let key = key.keyBytes
        return try await BlockingWork.run { () throws(LarderError) in
            try self.increment(key, by: step, durability: durability)
        }
    }

    /// Like the call above, for integers of another type.
    @discardableResult
    public func increment<Value: FixedWidthInteger & Sendable>(
        _ key: some CacheKey, by step: Value, durability: Durability? = nil
    ) async throws(LarderError) -> Value {
        let key = key.keyBytes
        return try await BlockingWork.run { () throws(LarderError) in
            try self.increment(key, by: step, durability: durability)
        }
    }

    /// Runs ``increment(_:by:durability:)-(_,Double,_)`` without blocking the calling thread.
    @discardableResult
    public func increment(_ key: some CacheKey, by step: Double, durability: Durability? = nil)
        async throws(LarderError) -> Double
    {
        let key = key.keyBytes
        return try await BlockingWork.run { () throws(LarderError) in
            try self.increment(key, by: step, durability: durability)
        }
    }

    // MARK: Removing

    /// Runs ``remove(_:durability:)-(CacheKey,_)`` without blocking the calling thread.
    @discardableResult
    public func remove(_ key: some CacheKey, durability: Durability? = nil) async throws(LarderError) -> Bool {
        let key = key.keyBytes
        return try await BlockingWork.run { () throws(LarderError) in try self.remove(key, durability: durability) }
    }

    /// Runs `remove(_:durability:)` without blocking the calling thread.
    @discardableResult
    public func remove(_ keys: some Sequence<some CacheKey>, durability: Durability? = nil)
        async throws(LarderError) -> Int
    {
        let keys = try source.keys(keys, "remove")
        return try await BlockingWork.run { () throws(LarderError) in try self.remove(keys, durability) }
    }

    /// Runs ``remove(_:ifEqual:durability:)`` without blocking the calling thread.
    @discardableResult
    public func remove<Value: Encodable>(_ key: some CacheKey, ifEqual value: Value, durability: Durability? = nil)
        async throws(LarderError) -> Bool
    {
        try await carryOut(try source.removal(key, ifEqual: value, durability))
    }

    /// Runs ``removeValue(_:forKey:durability:)`` without blocking the calling thread.
    public func removeValue<Value: Decodable>(
        _ type: Value.Type = Value.self, forKey key: some CacheKey, durability: Durability? = nil
    ) async throws(LarderError) -> Value? {
        let key = try source.key(key, "remove")
        let record = try await BlockingWork.run { () throws(LarderError) in try self.take(key, durability) }
        guard let record else { return nil }
        return try await source.decodeForTask(type, record, key)
    }

    /// Runs ``removeAll(counting:)`` without blocking the calling thread.
    @discardableResult
    public func removeAll(counting: Bool = false) async throws(LarderError) -> PurgeReport {
        try await BlockingWork.run { () throws(LarderError) in try self.removeAll(counting: counting) }
    }

    /// Runs `removeAll(tagged:soft:)` without blocking the calling thread.
    public func removeAll(tagged tag: String, soft: Bool = false) async throws(LarderError) {
        try await removeAll(tagged: [tag], soft: soft)
    }

    /// Like the call above, for several tags.
    public func removeAll(tagged tags: some Sequence<String>, soft: Bool = false) async throws(LarderError) {
        let tags = Array(tags)
        try await BlockingWork.run { () throws(LarderError) in try self.removeAll(tagged: tags, soft: soft) }
    }

    /// Runs ``remove(prefix:)`` without blocking the calling thread.
    @discardableResult
    public func remove(prefix: some CacheKey) async throws(LarderError) -> PurgeReport {
        let bytes = prefix.keyBytes
        return try await BlockingWork.run { () throws(LarderError) in try self.remove(prefix: bytes) }
    }

    /// Runs ``removeExpired()`` without blocking the calling thread.
    @discardableResult
    public func removeExpired() async throws(LarderError) -> PurgeReport {
        try await BlockingWork.run { () throws(LarderError) in try self.removeExpired() }
    }

    /// Runs ``sweep()`` without blocking the calling thread.
    @discardableResult
    public func sweep() async throws(LarderError) -> Int {
        try await BlockingWork.run { () throws(LarderError) in try self.sweep() }
    }

    // MARK: Many entries

    /// Runs ``set(_:policy:tags:durability:)`` without blocking the calling thread.
    public func set<Key: CacheKey, Value: Encodable>(
        _ pairs: some Sequence<(key: Key, value: Value)>, policy: EntryPolicy = .database,
        tags: [String] = [], durability: Durability? = nil
    ) async throws(LarderError) {
        try await apply(try batch(of: pairs, policy, tags), durability: durability)
    }

    /// Runs ``batch(durability:_:)-(_,(CacheBatch)->Result)`` without blocking the calling thread.
    @discardableResult
    public func batch<Result>(durability: Durability? = nil, _ body: (CacheBatch) throws -> Result)
        async throws -> Result
    {
        let batch = makeBatch()
        let result = try body(batch)
        try await apply(batch, durability: durability)
        return result
    }

    /// Runs ``apply(_:durability:)`` without blocking the calling thread.
    public func apply(_ batch: CacheBatch, durability: Durability? = nil) async throws(LarderError) {
        try await BlockingWork.run { () throws(LarderError) in try self.apply(batch, durability: durability) }
    }

    // MARK: The database

    /// Runs ``setPolicy(_:grace:jitter:)`` without blocking the calling thread.
    public func setPolicy(_ policy: UpdatePolicy, grace: Duration? = nil, jitter percent: Int? = nil)
        async throws(LarderError)
    {
        try await BlockingWork.run { () throws(LarderError) in
            try self.setPolicy(policy, grace: grace, jitter: percent)
        }
    }

    /// Runs ``snapshot()`` without blocking the calling thread.
    public func snapshot() async throws(LarderError) -> CacheSnapshot {
        try await BlockingWork.run { () throws(LarderError) in try self.snapshot() }
    }

    /// Runs ``withSnapshot(_:)-((CacheSnapshot)->Result)`` without blocking the calling thread.
    public func withSnapshot<Result>(_ body: (CacheSnapshot) async throws -> Result) async throws -> Result {
        let snapshot = try await snapshot()
        do {
            let result = try await body(snapshot)
            await snapshot.close()
            return result
        } catch {
            await snapshot.close()
            throw error
        }
    }

    /// Like the call above, for a closure that does not await.
    public func withSnapshot<Result>(_ body: (CacheSnapshot) throws -> Result) async throws -> Result {
        try await withSnapshot { (snapshot: CacheSnapshot) async throws in try body(snapshot) }
    }

    /// Runs ``delete()`` without blocking the calling thread.
    public func delete() async throws(LarderError) {
        try await BlockingWork.run { () throws(LarderError) in try self.delete() }
    }

    /// Runs ``declareIndexes(_:)`` without blocking the calling thread.
    public func declareIndexes(_ indexes: [Index]) async throws(LarderError) {
        try await BlockingWork.run { () throws(LarderError) in try self.declareIndexes(indexes) }
    }

    /// Runs ``dropIndexes(except:)`` without blocking the calling thread.
    @discardableResult
    public func dropIndexes(except indexes: [Index]) async throws(LarderError) -> Int {
        try await BlockingWork.run { () throws(LarderError) in try self.dropIndexes(except: indexes) }
    }

    /// Runs ``close()`` without blocking the calling thread.
    public func close() async { await BlockingWork.run { self.close() } }
}

// MARK: Larders

extension Cache {
    /// Runs ``delete(named:directory:)`` without blocking the calling thread.
    @discardableResult
    public static func delete(named name: String, directory: String? = nil) async throws(LarderError) -> Bool {
        try await BlockingWork.run { () throws(LarderError) in try delete(named: name, directory: directory) }
    }

    /// Runs ``deleteAll(directory:)`` without blocking the calling thread.
    @discardableResult
    public static func deleteAll(directory: String? = nil) async throws(LarderError) -> [String] {
        try await BlockingWork.run { () throws(LarderError) in try deleteAll(directory: directory) }
    }

    /// Runs ``databases(in:)`` without blocking the calling thread.
    public static func databases(in directory: String? = nil) async throws(LarderError) -> [String] {
        try await BlockingWork.run { () throws(LarderError) in try databases(in: directory) }
    }

    /// Runs ``setAsideDamaged(named:directory:)`` without blocking the calling thread.
    public static func setAsideDamaged(named name: String, directory: String? = nil) async throws(LarderError) {
        try await BlockingWork.run { () throws(LarderError) in try setAsideDamaged(named: name, directory: directory) }
    }

    /// Runs ``salvage(named:directory:)`` without blocking the calling thread.
    public static func salvage(named name: String, directory: String? = nil) async throws(LarderError) -> SalvageReport
    {
        try await BlockingWork.run { () throws(LarderError) in try salvage(named: name, directory: directory) }
    }
}
