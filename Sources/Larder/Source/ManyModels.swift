import LarderEngine

// Several models at one instant.

extension CacheSource {
    /// The models of several keys as they are at one instant, each decoded for this caller alone; nil where there is no
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

    /// As ``ownModels(_:_:fillCache:)``, for asynchronous callers: what memory has not is read by another thread.
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

    /// As ``sharedModels(_:_:fillCache:)``, for asynchronous callers.
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

    /// As ``ownModels(_:_:fillCache:)``, from their decoded forms where those are kept; the others are kept if their
    /// entries are hot.
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

    /// A fresh entry by its key's place, and by what something can be attached to it; 0 where nothing can.
    private struct Found: Sendable {
        let index: Int
        let record: Record
        var version: UInt64 = 0
    }

    private func foundRecords(_ keys: [Key], _ fillCache: Bool) throws(LarderError) -> [Found] {
        if let found = try hotRecords(keys, waits: true, { _, _ in false }) { return found }
        if try keepRead(keys, fillCache), let found = try hotRecords(keys, waits: true, { _, _ in false }) {
            return found
        }
        return try coldRecords(keys, fillCache: fillCache)
    }

    private func foundRecordsForTask(_ keys: [Key], _ fillCache: Bool) async throws(LarderError) -> [Found] {
        if let found = try hotRecords(keys, waits: false, { _, _ in false }) { return found }
        return try await BlockingWork.run { () throws(LarderError) in try self.foundRecords(keys, fillCache) }
    }

    /// As ``hotRecords(_:waits:_:)``, but for models that are kept decoded, which go into their places at once.
    private func takingDecoded<Value>(_ type: Value.Type, _ keys: [Key], _ values: inout [Value?], waits: Bool)
        throws(LarderError) -> [Found]?
    {
        let id = ObjectIdentifier(type)
        return try hotRecords(keys, waits: waits) { index, attachment in
            guard let model = attachment.value(of: id, madeBy: codecIdentity) else { return false }
            values[index] = model.assumingMemoryBound(to: Value.self).pointee
            return true
        }
    }

    /// Reads keys one by one, so that memory keeps what was found, an entry or none; after that all can be read at one
    /// instant.
    /// - Returns: false where there is no such memory. It may not be enough either: then the disk is asked for all of them.
    private func keepRead(_ keys: [Key], _ fillCache: Bool) throws(LarderError) -> Bool {
        guard snapshot == nil, fillCache, database.attachmentBytesMax > 0 else { return false }
        for key in keys {
            _ = try key.withBytes { bytes in
                Result { () throws(LarderError) in try read(bytes, "get") { _, _ in } }
            }.get()
        }
        return true
    }

    /// The fresh entries of keys by their places, if memory knows of all of them.
    /// - Parameters:
    ///   - waits: whether commits are waited for; where not, the answer is nil if there is one to wait for.
    ///   - use: takes what is kept beside an entry; locks are held meanwhile. Where it does, the entry is left out.
    /// - Returns: nil where the disk has to be asked. What `use` took is of no worth then.
    private func hotRecords(_ keys: [Key], waits: Bool, _ use: (Int, Attachment) -> Bool) throws(LarderError)
        -> [Found]?
    {
        if keys.isEmpty {
            // Nothing is read of no keys; what was closed says so all the same.
            _ = try hold("get")
            return []
        }
        guard snapshot == nil else { return nil }
        return try whileOpen("get") { (engine) throws(LarderError) in
            var found: [Found] = []
            var ticket = CommitTicket.none
            let read = try database.readManyInMemory(keys, now: database.now(), ticket: &ticket) { index, entry in
                guard let entry else { return }
                if let attachment = entry.attachment, use(index, attachment) { return attachment.touch() }
                let record = Record(entry.header, payload: entry.payload)
                found.append(Found(index: index, record: record, version: entry.version))
            }
            guard case .hit = read, waits || engine.pipeline.isDecided(ticket) else { return nil }
            try engine.pipeline.wait(for: ticket)
            return found
        }
    }

    private func coldRecords(_ keys: [Key], fillCache: Bool) throws(LarderError) -> [Found] {
        var found: [Found] = []
        for (index, record) in try records(keys, fillCache: fillCache).enumerated() {
            if let record { found.append(Found(index: index, record: record)) }
        }
        return found
    }
}
