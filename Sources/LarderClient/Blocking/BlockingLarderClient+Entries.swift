import LarderFetching
import LarderPlatform

// Calls about entries: read, write, inspect, list, fetch. The calls of the same names of RemoteCache describe them in
// full.

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

    /// Returns the stored bytes of a key; nil if there are none or they have expired.
    public func bytes(forKey key: some CacheKey) throws(LarderClientError) -> [UInt8]? {
        try perform(.get(key.keyBytes))
    }

    /// Returns whether there is a fresh entry under a key, whatever its value.
    public func contains(_ key: some CacheKey) throws(LarderClientError) -> Bool {
        try perform(.contains(key.keyBytes))
    }

    /// Returns the metadata of an entry without reading its value, as ``RemoteCache/info(forKey:)``.
    public func info(forKey key: some CacheKey) throws(LarderClientError) -> EntryInfo? {
        try perform(.info(key.keyBytes))
    }

    /// Returns the remaining lifetime of an entry; nil if there is no fresh entry.
    public func timeToLive(forKey key: some CacheKey) throws(LarderClientError) -> TimeToLive? {
        try perform(.timeToLive(key.keyBytes))
    }

    /// Returns the tags of an entry that are UTF-8, as ``RemoteCache/tags(forKey:)``. Needs larderd.
    public func tags(forKey key: some CacheKey) throws(LarderClientError) -> [String]? {
        try perform(Request<[String]?>.tags(key.keyBytes))
    }

    /// Returns the number of fresh entries in the database, as ``RemoteCache/count()``.
    public func count() throws(LarderClientError) -> Int { Int(clamping: try perform(.count)) }

    /// Returns the keys of the database's fresh entries, as ``RemoteCache/keys(matching:)``.
    /// ``forEachKey(matching:_:)`` includes keys that are not UTF-8, and is better for many keys.
    public func keys(matching pattern: String? = nil) throws(LarderClientError) -> [String] {
        var next: Request<ScanStep>? = .scan(matching: pattern?.keyBytes)
        var (seen, keys) = (Set<[UInt8]>(), [String]())
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

    // MARK: Writing

    /// Stores a model under a key, and replaces an existing entry, as ``RemoteCache/set(_:forKey:policy:tags:)``. The
    /// client's codec encodes the model: by default as JSON, which other programs can read. The Larder library stores
    /// the same bytes.
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
        try put(try named { () throws(LarderClientError) in try NewEntry(bytes: bytes, key.keyBytes, policy, tags) })
    }

    /// Stores a model under a key that has no fresh entry. If several clients do so concurrently, only one succeeds.
    /// - Returns: whether it was stored.
    public func setIfAbsent(
        _ value: some Encodable, forKey key: some CacheKey, policy: EntryPolicy = .database, tags: [String] = []
    ) throws(LarderClientError) -> Bool {
        try put(try newEntry(value, key.keyBytes, policy, tags), if: wordList("NX"))
    }

    /// Replaces a fresh entry, whatever its value.
    /// - Returns: whether there was a fresh entry; otherwise nothing was stored.
    public func setIfPresent(
        _ value: some Encodable, forKey key: some CacheKey, policy: EntryPolicy = .database, tags: [String] = []
    ) throws(LarderClientError) -> Bool {
        try put(try newEntry(value, key.keyBytes, policy, tags), if: wordList("XX"))
    }

    /// Replaces a fresh entry if it holds `previous` (compare and swap), as
    /// ``RemoteCache/replace(_:with:forKey:policy:tags:)``. Needs larderd, or Redis 8.4 or later.
    /// - Returns: whether it was stored.
    public func replace<Value: Encodable>(
        _ previous: Value, with value: Value, forKey key: some CacheKey, policy: EntryPolicy = .database,
        tags: [String] = []
    ) throws(LarderClientError) -> Bool {
        let key = key.keyBytes
        let condition = wordList("IFEQ") + [try newEntry(previous, key).bytes]
        return try put(try newEntry(value, key, policy, tags), if: condition)
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

    /// Removes a fresh entry if it holds `value`, compared as in ``replace(_:with:forKey:policy:tags:)``. Needs
    /// larderd, or Redis 8.4 or later.
    /// - Returns: whether it was removed.
    @discardableResult
    public func remove<Value: Encodable>(_ key: some CacheKey, ifEqual value: Value) throws(LarderClientError) -> Bool {
        let key = key.keyBytes
        return try perform(.remove(key, ifEqual: try newEntry(value, key).bytes))
    }

    /// Removes an entry and returns its value, in one step, as ``RemoteCache/removeValue(forKey:)``.
    public func removeValue<Value: Decodable>(_ type: Value.Type = Value.self, forKey key: some CacheKey)
        throws(LarderClientError) -> Value?
    {
        let key = key.keyBytes
        return try decoded(type, try perform(.take(key)), key)
    }

    /// Reads the model of a key and changes the lifetime of its entry in one step, as
    /// ``RemoteCache/value(forKey:renewing:)``.
    public func value<Value: Decodable>(
        _ type: Value.Type = Value.self, forKey key: some CacheKey, renewing policy: EntryPolicy
    ) throws(LarderClientError) -> Value? {
        let key = key.keyBytes
        return try decoded(type, try perform(try .get(key, renewing: policy, name)), key)
    }

    /// Changes the lifetime of an entry, as ``RemoteCache/touch(_:policy:)``.
    /// - Returns: whether there was a fresh entry.
    @discardableResult
    public func touch(_ key: some CacheKey, policy: EntryPolicy) throws(LarderClientError) -> Bool {
        var isThere = false
        for result in try performAll(try Request.touch(key.keyBytes, policy, name)) { isThere = try result.get() }
        return isThere
    }

    // MARK: Batches

    /// Stores many models in one step, all or none, as ``RemoteCache/set(_:policy:tags:)``.
    public func set<Key: CacheKey, Value: Encodable>(
        _ pairs: some Sequence<(key: Key, value: Value)>, policy: EntryPolicy = .database, tags: [String] = []
    ) throws(LarderClientError) {
        var batch = makeBatch()
        for (key, value) in pairs { try batch.set(value, forKey: key, policy: policy, tags: tags) }
        try apply(batch)
    }

    /// Calls `body` to fill a batch, and applies all its changes in one step, as ``RemoteCache/batch(_:)``.
    @discardableResult
    public func batch<Result>(_ body: (inout BlockingBatch) throws -> Result) throws -> Result {
        var batch = makeBatch()
        let result = try body(&batch)
        try apply(batch)
        return result
    }

    /// Creates an empty batch with this client's codec, for ``apply(_:)``.
    public func makeBatch() -> BlockingBatch { BlockingBatch(codec: codec) }

    /// Applies the changes of a batch, in the order in which they were added.
    public func apply(_ batch: BlockingBatch) throws(LarderClientError) {
        guard !batch.isEmpty else { return try session.nothing("batch", ()) }
        switch try BatchPlan(batch.changes, for: try server()) {
        case .command(let request): try perform(request)
        case .transaction(let commands):
            let requests = [wordList("MULTI")] + commands + [wordList("EXEC")]
            let replies = try BatchPlan.results(of: commands, try session.perform(requests, operation: "batch"))
            try BatchPlan.check(replies ?? [], to: batch.changes, "batch", in: session, name)
        }
    }

    // MARK: Updates and counters

    /// Updates an entry atomically: reads it, lets `body` change it, and stores the result, as
    /// ``RemoteCache/update(forKey:policy:tags:attempts:_:)``. `body` may use the client, but not update the same key.
    @discardableResult
    public func update<Value: Codable, Result>(
        _ type: Value.Type = Value.self, forKey key: some CacheKey, policy: EntryPolicy = .keep, tags: [String] = [],
        attempts: Int? = nil, _ body: (inout Value?) throws -> Result
    ) throws -> Result {
        let key = key.keyBytes
        var update = try EntryUpdate(key, attempts: attempts, timeoutMilliseconds: session.timeoutMilliseconds)
        let running = try update.begin(in: session, name)
        defer { running.end() }
        while true {
            let previous = try bytes(forKey: key)
            var model = try decodable(type, previous, key)
            let result = try RunningUpdate.$current.withValue(running) { try body(&model) }
            let entry = try model.map { try newEntry($0, key, policy, tags) }
            if try exchange(previous, for: entry, key) { return result }
            WorkThread.sleep(nanoseconds: try update.pause(name))
        }
    }

    /// Adds to an integer in one step, as `RemoteCache.increment(_:by:)`. A key without a fresh entry counts as 0.
    @discardableResult
    public func increment(_ key: some CacheKey, by step: Int = 1) throws(LarderClientError) -> Int {
        Int(clamping: try perform(.increment(key.keyBytes, by: Int64(step))))
    }

    /// Like the call above, for integers of another type. Costs and errors are those of `RemoteCache.increment(_:by:)`.
    @discardableResult
    public func increment<Value: FixedWidthInteger & Sendable>(_ key: some CacheKey, by step: Value)
        throws(LarderClientError) -> Value
    {
        let key = key.keyBytes
        if let step = step.stepOfDaemon { return Value(clamping: try perform(.increment(key, by: step))) }
        var update = try EntryUpdate(key, timeoutMilliseconds: session.timeoutMilliseconds)
        while true {
            let previous = try bytes(forKey: key)
            let (sum, entry) = try step.added(to: previous, key)
            if try exchange(previous, for: entry, key) { return sum }
            WorkThread.sleep(nanoseconds: try update.pause(name))
        }
    }

    /// Adds to a number in one step, as `RemoteCache.increment(_:by:)`. A key without a fresh entry counts as 0.
    @discardableResult
    public func increment(_ key: some CacheKey, by step: Double) throws(LarderClientError) -> Double {
        try perform(.increment(key.keyBytes, by: step))
    }

    /// Changes single properties of a stored model in one atomic step, as ``RemoteCache/edit(_:of:_:)``.
    @discardableResult
    public func edit<Value: Codable>(
        _ key: some CacheKey, of type: Value.Type = Value.self, _ body: (inout ModelEdits<Value>) throws -> Void
    ) throws -> Value {
        let edit = try EntryEdit(key.keyBytes, codec, name, body)
        if edit.mustBeTried { return try checkedModel(edit) }
        let bytes: [UInt8]
        do throws(LarderClientError) { bytes = try perform(edit.request) } catch { throw edit.failure(error) }
        return try edit.model(in: bytes, codec)
    }

    private func checkedModel<Value: Codable>(_ edit: EntryEdit<Value>) throws(LarderClientError) -> Value {
        var update = try EntryUpdate(edit.key, timeoutMilliseconds: session.timeoutMilliseconds)
        while true {
            let previous = try bytes(forKey: edit.key)
            let (model, entry) = try edit.result(for: previous, codec)
            guard let entry, try !exchange(previous, for: entry, edit.key) else { return model }
            WorkThread.sleep(nanoseconds: try update.pause(name))
        }
    }

    // MARK: Fetching

    /// Returns the model of a key. On a miss it runs `fetch`, and stores the result, as
    /// ``RemoteCache/value(forKey:options:fetch:)-(_,_,()->Value)``.
    ///
    /// The caller that fetches runs its closure on its own thread. The others wait for the value, each on a connection
    /// of its own; if the entry is stale but within its grace, they get the stale value at once. The fetching caller
    /// always waits for the origin, because nothing runs in the background. So ``FetchOptions/softTimeout`` has no
    /// effect; ``FetchOptions/hardTimeout`` limits only how long the others wait. With Redis instead of larderd, every
    /// caller runs its own fetch.
    public func value<Value: Codable>(
        _ type: Value.Type = Value.self, forKey key: some CacheKey, options: FetchOptions = FetchOptions(),
        fetch: () throws -> Value
    ) throws -> Value {
        let call = try BlockingFetch<Value>(self, key.keyBytes, options)
        if let value = try call.value({ withoutNil(try fetch()) }) ?? nothing(of: type) { return value }
        throw options.source == .cacheOnly ? FetchError.notCached(call.name) : FetchError.absent(call.name)
    }

    /// Like the call above, for an origin that may have no value. `fetch` then returns nil, and so does the call. The
    /// absence is remembered for all callers for the duration ``FetchOptions/absent``.
    @_disfavoredOverload
    public func value<Value: Codable>(
        _ type: Value.Type = Value.self, forKey key: some CacheKey, options: FetchOptions = FetchOptions(),
        fetch: () throws -> Value?
    ) throws -> Value? {
        try BlockingFetch<Value>(self, key.keyBytes, options).value(fetch)
    }

    /// Returns the models of several keys, as ``RemoteCache/values(forKeys:options:fetch:)``. One call of `fetch` reads
    /// all keys that the daemon does not have. Waits for other callers' running fetches of its keys.
    public func values<Key: CacheKey & Hashable, Value: Codable>(
        _ type: Value.Type = Value.self, forKeys keys: some Sequence<Key>, options: FetchOptions = FetchOptions(),
        fetch: ([Key]) throws -> [Key: Value]
    ) throws -> [Key: Value] {
        var seen: Set<Key> = []
        let keys = keys.filter { seen.insert($0).inserted }
        guard options.source != .ignoreCache else { return try fetch(keys) }
        if keys.isEmpty || options.source == .cacheOnly && options.takesAnyFresh {
            return try values(type, forKeys: keys)
        }
        var found: [Key: Value] = [:]
        if options.takesAnyFresh {
            for (key, bytes) in zip(keys, try perform(.getAll(keys.map(\.keyBytes)))) {
                found[key] = try decodable(type, bytes, key.keyBytes)
            }
        }
        let calls = try keys.filter { found[$0] == nil }.map {
            (key: $0, call: try BlockingFetch<Value>(self, $0.keyBytes, options))
        }
        return try found.merging(BlockingFetch.values(calls, fetch)) { $1 }
    }
}
