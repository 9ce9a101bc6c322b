import LarderEngine

// Calls that read several models at one instant.

extension CacheSource {
    /// Returns the models of several keys at one instant, each decoded for this caller alone; nil for a key without a
    /// fresh entry.
    func ownModels<Value: Decodable>(_ type: Value.Type, _ keys: [some CacheKey], fillCache: Bool)
        throws(LarderError) -> [Value?]
    {
        var values = [Value?](repeating: nil, count: keys.count)
        let keys = try self.keys(keys, "get")
        for found in try foundRecords(keys, fillCache) {
            values[found.index] = try decode(type, found.record, keys[found.index])
        }
        return values
    }

    /// Like ``ownModels(_:_:fillCache:)``, for asynchronous callers: another thread reads entries that are not in
    /// memory.
    func modelsForTask<Value: Decodable>(_ type: Value.Type, _ keys: [some CacheKey], fillCache: Bool)
        async throws(LarderError) -> [Value?]
    {
        var values = [Value?](repeating: nil, count: keys.count)
        let keys = try self.keys(keys, "get")
        for found in try await foundRecordsForTask(keys, fillCache) {
            values[found.index] = try await decodeForTask(type, found.record, keys[found.index])
        }
        return values
    }

    /// Like ``sharedModels(_:_:fillCache:)``, for asynchronous callers.
    func sharedModelsForTask<Value: Decodable & Sendable>(
        _ type: Value.Type, _ keys: [some CacheKey], fillCache: Bool
    ) async throws(LarderError) -> [Value?] {
        guard keepsDecoded else { return try await modelsForTask(type, keys, fillCache: fillCache) }
        var values = [Value?](repeating: nil, count: keys.count)
        let keys = try self.keys(keys, "get")
        var found = try takingDecoded(type, keys, &values, waits: false)
        if found == nil { found = try await foundRecordsForTask(keys, fillCache) }
        for found in found ?? [] {
            values[found.index] = try decodedAndAttached(type, found.record, keys[found.index], version: found.version)
        }
        database.releaseDetached()
        return values
    }

    /// Like ``ownModels(_:_:fillCache:)``, but uses decoded models of entries in memory, and keeps the models that it
    /// decodes.
    func sharedModels<Value: Decodable & Sendable>(_ type: Value.Type, _ keys: [some CacheKey], fillCache: Bool)
        throws(LarderError) -> [Value?]
    {
        guard keepsDecoded else { return try ownModels(type, keys, fillCache: fillCache) }
        var values = [Value?](repeating: nil, count: keys.count)
        let keys = try self.keys(keys, "get")
        var found = try takingDecoded(type, keys, &values, waits: true)
        if found == nil, try keepRead(keys, fillCache) { found = try takingDecoded(type, keys, &values, waits: true) }
        if found == nil { found = try coldRecords(keys, fillCache: fillCache) }
        for found in found ?? [] {
            values[found.index] = try decodedAndAttached(type, found.record, keys[found.index], version: found.version)
        }
        database.releaseDetached()
        return values
    }

    /// A fresh entry that was found. `version` is 0 if the entry was read from the disk. Otherwise it is the version of
    /// the entry in memory, to which a decoded model can be attached.
    private typealias Found = (index: Int, record: Record, version: UInt64)

    private func foundRecords(_ keys: [Key], _ fillCache: Bool) throws(LarderError) -> [Found] {
        if let found = try recordsInMemory(keys, waits: true, { _, _ in false }) { return found }
        if try keepRead(keys, fillCache), let found = try recordsInMemory(keys, waits: true, { _, _ in false }) {
            return found
        }
        return try coldRecords(keys, fillCache: fillCache)
    }

    private func foundRecordsForTask(_ keys: [Key], _ fillCache: Bool) async throws(LarderError) -> [Found] {
        if let found = try recordsInMemory(keys, waits: false, { _, _ in false }) { return found }
        return try await BlockingWork.run { () throws(LarderError) in try self.foundRecords(keys, fillCache) }
    }

    /// Like ``recordsInMemory(_:waits:_:)``, but copies the decoded models in memory to `values`, and omits their
    /// entries from the result.
    private func takingDecoded<Value>(_ type: Value.Type, _ keys: [Key], _ values: inout [Value?], waits: Bool)
        throws(LarderError) -> [Found]?
    {
        let id = ObjectIdentifier(type)
        return try recordsInMemory(keys, waits: waits) { index, attachment in
            guard let model = attachment.value(of: id, madeBy: codecIdentity) else { return false }
            values[index] = model.assumingMemoryBound(to: Value.self).pointee
            return true
        }
    }

    /// Reads keys one at a time, so that the entry cache in memory keeps each result: the entry or its absence.
    /// Afterwards all of them can be read from memory at one instant.
    /// - Returns: false if the larder keeps no entries in memory. Even after true, its memory may be too small for all
    ///   keys; the caller must then read them from the disk.
    private func keepRead(_ keys: [Key], _ fillCache: Bool) throws(LarderError) -> Bool {
        guard snapshot == nil, fillCache, database.attachmentBytesMax > 0 else { return false }
        try remember(keys)
        return true
    }

    /// Returns the fresh entries of keys with their indices, if the entry cache in memory knows all of the keys.
    /// - Parameters:
    ///   - waits: whether to wait for pending commits. If false, the result is nil while a commit is pending.
    ///   - use: receives the decoded model of an entry; called with locks held. Returns true to omit the entry.
    /// - Returns: nil if the disk must be read. Results of `use` are invalid in that case.
    private func recordsInMemory(_ keys: [Key], waits: Bool, _ use: (Int, Attachment) -> Bool) throws(LarderError)
        -> [Found]?
    {
        if keys.isEmpty {
            // An empty request reads nothing, but still throws if the cache is closed.
            _ = try hold("get")
            return []
        }
        guard snapshot == nil else { return nil }
        return try whileOpen("get") { (engine) throws(LarderError) in
            var found: [Found] = []
            var hits = 0
            var ticket = CommitTicket.none
            let entries = Update.take()
            defer { entries.giveBack() }
            entries.add(keys, areDistinct: true)
            let isDone = database.withBatch(entries, now: database.now(), writes: false, ticket: &ticket) { entries in
                for index in keys.indices where entries.has(index) {
                    hits += 1
                    if let attachment = entries.attachment(index), use(index, attachment) {
                        attachment.touch()
                    } else if let record = entries.current(index) {
                        found.append((index, record, entries.version(index)))
                    }
                }
                return true
            }
            guard isDone else { return nil }
            guard waits || engine.pipeline.isDecided(ticket) else {
                // Undo the counts: the thread that waits for the commit reads and counts again.
                database.noteReads(hits: -hits, misses: hits - keys.count)
                return nil
            }
            try engine.pipeline.wait(for: ticket)
            return found
        }
    }

    private func coldRecords(_ keys: [Key], fillCache: Bool) throws(LarderError) -> [Found] {
        var found: [Found] = []
        for (index, record) in try records(keys, fillCache: fillCache).enumerated() {
            if let record { found.append((index, record, 0)) }
        }
        return found
    }
}
