// Writes that depend on the stored value, lifetimes of entries, counters.

extension RemoteCache {
    // MARK: Conditions

    /// Stores a model under a key that has no fresh entry. If several clients do so concurrently, only one succeeds.
    /// - Parameters:
    ///   - value: the model.
    ///   - key: the entry's key.
    ///   - policy: how long this entry stays fresh. By default it follows the database's policy.
    ///   - tags: as for ``set(_:forKey:policy:tags:)``.
    /// - Returns: whether the model was stored.
    public func setIfAbsent(
        _ value: Value, forKey key: some CacheKey, policy: EntryPolicy = .database, tags: [String] = []
    ) async throws(LarderClientError) -> Bool {
        try await put(try newEntry(value, key.keyBytes, policy, tags), if: wordList("NX"))
    }

    /// Replaces a fresh entry, whatever its value.
    /// - Parameters:
    ///   - value: the model.
    ///   - key: the entry's key.
    ///   - policy: how long this entry stays fresh. By default it follows the database's policy.
    ///   - tags: as for ``set(_:forKey:policy:tags:)``.
    /// - Returns: whether the model was stored; false if there was no fresh entry.
    public func setIfPresent(
        _ value: Value, forKey key: some CacheKey, policy: EntryPolicy = .database, tags: [String] = []
    ) async throws(LarderClientError) -> Bool {
        try await put(try newEntry(value, key.keyBytes, policy, tags), if: wordList("XX"))
    }

    /// Replaces a fresh entry if it holds `previous` (compare and swap).
    ///
    /// Encodes `previous` with the cache's codec, and compares the bytes with the stored bytes. Use it only for models
    /// that are always encoded the same way, not for dictionaries. ``update(forKey:policy:tags:attempts:_:)`` works for
    /// all models. Needs larderd, or Redis 8.4 or later.
    /// - Parameters:
    ///   - previous: the expected value.
    ///   - value: the model.
    ///   - key: the entry's key.
    ///   - policy: how long this entry stays fresh. By default it follows the database's policy.
    ///   - tags: as for ``set(_:forKey:policy:tags:)``.
    /// - Returns: whether the model was stored.
    public func replace(
        _ previous: Value, with value: Value, forKey key: some CacheKey, policy: EntryPolicy = .database,
        tags: [String] = []
    ) async throws(LarderClientError) -> Bool {
        let key = key.keyBytes
        let previous = try newEntry(previous, key).bytes
        return try await put(try newEntry(value, key, policy, tags), if: wordList("IFEQ") + [previous])
    }

    /// Removes a fresh entry if it holds `value`, compared as in ``replace(_:with:forKey:policy:tags:)``. Does not
    /// remove a newer value that another client has stored. Needs larderd, or Redis 8.4 or later.
    /// - Returns: whether the entry was removed.
    @discardableResult
    public func remove(_ key: some CacheKey, ifEqual value: Value) async throws(LarderClientError) -> Bool {
        let key = key.keyBytes
        return try await store.perform(.remove(key, ifEqual: try newEntry(value, key).bytes))
    }

    /// Updates an entry atomically: reads it, lets `body` change it, and stores the result. If another client has
    /// changed the value in the meantime, `body` runs again with the new value. Takes two round trips for each run.
    ///
    /// ```swift
    /// try await baskets.update(forKey: "ana") { basket in
    ///     basket = basket ?? Basket()
    ///     basket?.items.append(item)
    /// }
    /// ```
    /// Needs larderd, or Redis 8.4 or later.
    /// - Parameters:
    ///   - key: the entry's key.
    ///   - policy: how long the result stays fresh. The default, ``EntryPolicy/keep``, keeps the entry's own deadline
    ///     if it has one. If the entry follows the database's policy, its lifetime starts again.
    ///   - tags: as for ``set(_:forKey:policy:tags:)``. If there are none, the entry keeps its tags.
    ///   - attempts: the maximum number of runs of `body`; `invalidArgument` is thrown for less than 1. Nil, the
    ///     default, allows 64 runs, and more until ``ClientOptions/timeoutMilliseconds`` have passed. Between runs, the
    ///     call pauses for a random time of up to half a second, so that many tasks can change one key.
    ///   - body: receives the model; nil if there is no fresh entry, or its value is of another type, which is reported
    ///     to ``ClientOptions/onEvent``. `body` changes the parameter to the model to store, or to nil to remove
    ///     the entry. `body` may run several times, so its side effects must be repeatable. If `body` throws, nothing
    ///     is written.
    /// - Returns: the result of the last run of `body`.
    /// - Throws: `conflict` if another client changed the value in every attempt; `recursion` if the closure of an
    ///   update of the key makes the call, or `body` changes the key itself in two attempts in a row; errors of `body`.
    @discardableResult
    public func update<Result>(
        forKey key: some CacheKey, policy: EntryPolicy = .keep, tags: [String] = [],
        attempts: Int? = nil, _ body: (inout Value?) async throws -> Result
    ) async throws -> Result {
        let key = key.keyBytes
        var update = try EntryUpdate(key, attempts: attempts, timeoutMilliseconds: core.options.timeoutMilliseconds)
        let running = try update.begin(in: store, name)
        store.calls.begin()
        defer {
            store.calls.end()
            running.end()
        }
        while true {
            let previous = try await store.perform(.get(key))
            var model = try await decodable(previous, key)
            let result = try await RunningUpdate.$current.withValue(running) { try await body(&model) }
            let entry = try model.map { try newEntry($0, key, policy, tags) }
            if try await exchange(previous, for: entry, key) { return result }
            try await Self.rest(try update.pause(name), "update")
        }
    }

    /// Changes single properties of a stored model in one atomic step, as ``ModelEdits`` describes. The daemon makes
    /// the changes, in one round trip. The client makes them, as ``update(forKey:policy:tags:attempts:_:)`` does, until
    /// an edit of this process has changed the property, if there is a schema with checks, defaults or upgrades, for
    /// nested places, and for sums of other types than `Int`, `Int64` and `Double`. The entry must be JSON.
    /// It keeps its expiry rule and its tags, and counts as stored now. Needs larderd.
    /// - Parameters:
    ///   - key: the entry's key.
    ///   - type: the model's type; that of the cache.
    ///   - body: appends the changes; called once. If it throws, nothing is changed.
    /// - Returns: the model as it was stored.
    /// - Throws: `noSuchEntry` if there is no fresh entry; `invalidArgument` if a change is impossible, `server` if the
    ///   daemon refuses it; `conflict` as `update`. The entry is then unchanged. `decode` if the value is no longer a
    ///   model of this type. The change may then be stored, if the daemon made it: the entry was of another type, or
    ///   the model's own decoder refuses the values.
    @discardableResult
    public func edit(
        _ key: some CacheKey, of type: Value.Type = Value.self, _ body: (inout ModelEdits<Value>) throws -> Void
    ) async throws -> Value {
        let edit = try EntryEdit(key.keyBytes, codec, name, body)
        if edit.mustBeTried { return try await checkedModel(edit) }
        let bytes: [UInt8]
        do throws(LarderClientError) { bytes = try await store.perform(edit.request) } catch {
            throw edit.failure(error)
        }
        return try edit.model(in: bytes, codec)
    }

    /// Makes the changes of an edit in this process, and stores the model if it passes its checks.
    private func checkedModel(_ edit: EntryEdit<Value>) async throws(LarderClientError) -> Value {
        var update = try EntryUpdate(edit.key, timeoutMilliseconds: core.options.timeoutMilliseconds)
        while true {
            let previous = try await store.perform(.get(edit.key))
            let (model, entry) = try edit.result(for: previous, codec)
            guard let entry, try await !exchange(previous, for: entry, edit.key) else { return model }
            try await Self.rest(try update.pause(name), "edit")
        }
    }

    /// If the stored value is still `previous`, stores an entry, or removes the key if the entry is nil.
    /// - Returns: whether the stored value was still `previous`, so that the change was made.
    private func exchange(_ previous: [UInt8]?, for entry: NewEntry?, _ key: [UInt8])
        async throws(LarderClientError) -> Bool
    {
        let server = try await store.server()
        let request = try LarderClientError.naming(name) { () throws(LarderClientError) in
            try NewEntry.replacing(previous, with: entry, key, for: server)
        }
        return if let request { try await store.perform(request) } else { true }
    }

    // MARK: Lifetimes

    /// Removes an entry and returns its value, in one step.
    /// - Returns: nil if there was no fresh entry.
    /// - Throws: `decode` if the value is of another type; the entry is still removed.
    public func removeValue(forKey key: some CacheKey) async throws(LarderClientError) -> Value? {
        let key = key.keyBytes
        return try await decoded(try await store.perform(.take(key)), key, "GETDEL")
    }

    /// Reads the model of a key and changes the lifetime of its entry in one step, for example for sessions that expire
    /// when unused. For the policies see ``touch(_:policy:)``. Never uses the near cache.
    /// - Returns: nil if there is no fresh entry.
    /// - Throws: `decode` if the value is of another type; the entry still gets its new lifetime.
    public func value(forKey key: some CacheKey, renewing policy: EntryPolicy) async throws(LarderClientError)
        -> Value?
    {
        let key = key.keyBytes
        return try await decoded(try await store.perform(try .get(key, renewing: policy, name)), key, "GETEX")
    }

    /// Changes the lifetime of an entry. Its value and the time at which it was stored stay the same.
    /// - Parameters:
    ///   - key: the entry's key.
    ///   - policy: intervals count from now; an instant in the past removes the entry; ``EntryPolicy/keep`` changes
    ///     nothing.
    /// - Returns: whether there was a fresh entry.
    /// - Throws: `invalidArgument` for ``EntryPolicy/database``, because the daemon has no command for it.
    @discardableResult
    public func touch(_ key: some CacheKey, policy: EntryPolicy) async throws(LarderClientError) -> Bool {
        var isThere = false
        for result in try await store.performAll(try Request.touch(key.keyBytes, policy, name)) {
            isThere = try result.get()
        }
        return isThere
    }
}

extension RemoteCache where Value == Int {
    /// Adds to an integer in one step. A key without a fresh entry counts as 0. The entry keeps its deadline rule and
    /// its tags.
    /// - Returns: the sum.
    /// - Throws: `server` if the value is not an integer, or the sum is not an `Int`.
    @discardableResult
    public func increment(_ key: some CacheKey, by step: Int = 1) async throws(LarderClientError) -> Int {
        Int(clamping: try await store.perform(.increment(key.keyBytes, by: Int64(step))))
    }
}

extension RemoteCache where Value: FixedWidthInteger {
    /// Adds to an integer. A key without a fresh entry counts as 0. The entry keeps its deadline rule and its tags.
    ///
    /// Signed 64-bit numbers are added by the daemon itself, in one round trip. Other types need larderd, or Redis 8.4
    /// or later. They take two round trips, and more if other clients change the entry in the meantime, as in
    /// ``update(forKey:policy:tags:attempts:_:)``.
    /// - Returns: the sum.
    /// - Throws: `decode` if the value is not an integer of this type; `invalidArgument` if the sum does not fit into
    ///   the type; `conflict` if other clients changed the entry in every attempt. For signed 64-bit integers, `server`
    ///   is thrown instead.
    @discardableResult
    public func increment(_ key: some CacheKey, by step: Value = 1) async throws(LarderClientError) -> Value {
        let key = key.keyBytes
        if let step = step.stepOfDaemon { return Value(clamping: try await store.perform(.increment(key, by: step))) }
        var update = try EntryUpdate(key, timeoutMilliseconds: core.options.timeoutMilliseconds)
        store.calls.begin()
        defer { store.calls.end() }
        while true {
            let previous = try await store.perform(.get(key))
            let (sum, entry) = try step.added(to: previous, key)
            if try await exchange(previous, for: entry, key) { return sum }
            try await Self.rest(try update.pause(name), "increment")
        }
    }
}

extension RemoteCache where Value == Double {
    /// Adds to a number in one step. A key without a fresh entry counts as 0. The entry keeps its deadline rule and its
    /// tags.
    /// - Returns: the sum.
    /// - Throws: `server` if the value is not a number, or the sum is not finite; the entry is unchanged in that case.
    ///   `decode` if Redis has stored a sum that does not fit into a `Double`.
    @discardableResult
    public func increment(_ key: some CacheKey, by step: Double) async throws(LarderClientError) -> Double {
        try await store.perform(.increment(key.keyBytes, by: step))
    }
}
