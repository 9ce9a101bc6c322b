import LarderEngine

// Decoded models are kept with the bytes of entries in memory, so that a repeated read costs a lookup and no decoding.
// Only the overloads for Sendable models use this, because several readers share the model.

extension CacheSource {
    /// Returns the fresh model of a key: the decoded model in memory if there is one. Otherwise decodes the entry, and
    /// keeps the model if the entry is in memory.
    ///
    /// Inlinable, so that a caller with concrete types copies the model as its own type and accesses the key's bytes
    /// directly. This halves the cost of a read from memory.
    @inlinable func sharedModel<Value: Decodable & Sendable>(_ type: Value.Type, _ key: some CacheKey, fillCache: Bool)
        throws(LarderError) -> Value?
    {
        var model: Value?
        let sequence = key.withKeyBytes { bytes in
            // `readDecoded` calls this only for a model of this type, so the cast is safe.
            readDecoded(ObjectIdentifier(type), bytes) { model = $0.assumingMemoryBound(to: Value.self).pointee }
        }
        guard let sequence else { return try modelToShare(type, key, fillCache: fillCache) }
        if sequence != 0 { try waitForCommit(sequence) }
        return model
    }

    /// Like ``sharedModel(_:_:fillCache:)``, for asynchronous callers: only work that may block runs on another thread.
    @inlinable func sharedModelForTask<Value: Decodable & Sendable>(
        _ type: Value.Type, _ key: some CacheKey, fillCache: Bool
    ) async throws(LarderError) -> Value? {
        var model: Value?
        let sequence = key.withKeyBytes { bytes in
            readDecoded(ObjectIdentifier(type), bytes) { model = $0.assumingMemoryBound(to: Value.self).pointee }
        }
        guard let sequence else { return try await modelToShareForTask(type, key, fillCache: fillCache) }
        if sequence != 0 { try await taskWaitsForCommit(sequence) }
        return model
    }

    /// Gives access to the decoded model of a fresh entry, if there is one of this type.
    /// - Parameters:
    ///   - endsSoon: if `body` is called, set to whether the entry expires soon and should be refreshed now.
    ///   - body: called at most once, with the address of the model, to copy it. Called with locks held.
    /// - Returns: nil if `body` was not called, otherwise the sequence number of the commit to wait for with
    ///   ``waitForCommit(_:)``; 0 for none.
    @usableFromInline func readDecoded(
        _ type: ObjectIdentifier, _ key: UnsafeRawBufferPointer, endsSoon: UnsafeMutablePointer<Bool>? = nil,
        _ body: (UnsafeRawPointer) -> Void
    ) -> UInt64? {
        // A larder that is being shut down has no decoded models, so it need not be kept open here.
        guard keepsDecoded, !isClosed, key.count <= Key.bytesMax else { return nil }
        var ticket = CommitTicket.none
        let isRead = database.readInMemory(key, now: database.now(), usesAttachment: true, ticket: &ticket) { entry in
            // Safe without counting references: the entry retains the attachment, and a lock protects the entry.
            guard let attachment = entry.attachment,
                let model = attachment._withUnsafeGuaranteedRef({ $0.value(of: type, madeBy: codecIdentity) })
            else { return false }
            body(model)
            endsSoon?.pointee = entry.endsSoon
            return true
        }
        return isRead ? ticket.sequence : nil
    }

    /// Waits for the commit with this sequence number, which stored a model that was read.
    @usableFromInline func waitForCommit(_ sequence: UInt64) throws(LarderError) {
        try whileOpen("get") { (engine) throws(LarderError) in
            try engine.pipeline.wait(for: CommitTicket(sequence: sequence))
        }
    }

    /// Does the work of ``sharedModel(_:_:fillCache:)`` if there is no decoded model in memory.
    @usableFromInline func modelToShare<Value: Decodable & Sendable>(
        _ type: Value.Type, _ key: some CacheKey, fillCache: Bool
    ) throws(LarderError) -> Value? {
        guard keepsDecoded else { return try ownModel(type, key, fillCache: fillCache) }
        let lease = try hold("get")
        defer { database.releaseDetached() }
        defer { withExtendedLifetime(lease) {} }
        let key = try self.key(key, "get")
        return try measuring("get") { () throws(LarderError) in
            try decodedAndKept(type, key, lease.engine, fillCache: fillCache)
        }
    }

    @usableFromInline func taskWaitsForCommit(_ sequence: UInt64) async throws(LarderError) {
        let lease = try hold("get")
        let ticket = CommitTicket(sequence: sequence)
        if lease.engine.pipeline.isDecided(ticket) { return try lease.engine.pipeline.wait(for: ticket) }
        try await BlockingWork.run { () throws(LarderError) in try lease.engine.pipeline.wait(for: ticket) }
    }

    /// Like ``modelToShare(_:_:fillCache:)``, for asynchronous callers.
    @usableFromInline func modelToShareForTask<Value: Decodable & Sendable>(
        _ type: Value.Type, _ key: some CacheKey, fillCache: Bool
    ) async throws(LarderError) -> Value? {
        let key = try self.key(key, "get")
        defer { database.releaseDetached() }
        if keepsDecoded, let known = try known(key) {
            return try known.record.flatMap { (record) throws(LarderError) in
                try decodedAndAttached(type, record, key, version: known.version)
            }
        }
        return try await ownModelForTask(type, key, fillCache: fillCache)
    }

    /// Like ``ownModel(_:_:fillCache:)``, for asynchronous callers. Decodes in the calling task.
    func ownModelForTask<Value: Decodable>(_ type: Value.Type, _ key: Key, fillCache: Bool)
        async throws(LarderError) -> Value?
    {
        guard let record = try await recordForTask(key, fillCache: fillCache) else { return nil }
        return try await decodeForTask(type, record, key)
    }

    /// Returns the fresh entry of a key, for asynchronous callers; nil if there is none.
    func recordForTask(_ key: Key, _ operation: String = "get", fillCache: Bool = true)
        async throws(LarderError) -> Record?
    {
        if let known = try known(key, operation) { return known.record }
        return try await BlockingWork.run { () throws(LarderError) in
            try self.record(key, operation, fillCache: fillCache)
        }
    }

    /// Like ``decode(_:_:_:)``, for asynchronous callers: if an entry cannot be decoded and must be removed, another
    /// thread removes it.
    func decodeForTask<Value: Decodable>(
        _ type: Value.Type, _ record: Record, _ key: Key, isReplaceable: Bool = false
    ) async throws(LarderError) -> Value? {
        guard onDecodingFailure == .removeAndMiss, snapshot == nil else {
            return try decode(type, record, key, isReplaceable: isReplaceable)
        }
        do throws(LarderError) {
            return try decodeOrThrow(type, record, key)
        } catch {
            try await BlockingWork.run { () throws(LarderError) in try self.remove(key, holding: record) }
            return nil
        }
    }

    /// Returns the state of a key in memory: its fresh entry, and the version to which a decoded model can be attached;
    /// or no entry and 0. Returns nil if the disk must be read, or a commit is pending.
    func known(_ key: Key, _ operation: String = "get") throws(LarderError) -> (record: Record?, version: UInt64)? {
        guard snapshot == nil else { return nil }
        return try whileOpen(operation) { (engine) throws(LarderError) in
            var ticket = CommitTicket.none
            var known: (record: Record?, version: UInt64) = (nil, 0)
            let outcome = try key.withBytes { (bytes) throws(LarderError) in
                try database.read(bytes, .memoryOnly, ticket: &ticket) { record, version in
                    known = (Record(record), version)
                }
            }
            guard outcome == .cold else {
                guard engine.pipeline.isDecided(ticket) else {
                    // Undo the count: the thread that waits for the commit reads and counts again.
                    let hits = known.record == nil ? 0 : 1
                    database.noteReads(hits: -hits, misses: hits - 1)
                    return nil
                }
                // The commit has succeeded or failed already, so this does not block. It throws if the commit failed.
                try engine.pipeline.wait(for: ticket)
                return known
            }
            return nil
        }
    }

    /// Returns the fresh model of a key, decoded for this caller alone.
    @usableFromInline func ownModel<Value: Decodable>(_ type: Value.Type, _ key: some CacheKey, fillCache: Bool)
        throws(LarderError) -> Value?
    {
        let key = try self.key(key, "get")
        guard let record = try record(key, fillCache: fillCache) else { return nil }
        return try decode(type, record, key)
    }

    private func decodedAndKept<Value: Decodable & Sendable>(
        _ type: Value.Type, _ key: Key, _ engine: Engine, fillCache: Bool
    ) throws(LarderError) -> Value? {
        var ticket = CommitTicket.none
        var found: Record?
        var version: UInt64 = 0
        // Only copy the payload here, where a lock of the entry cache is held. Decode it later, because decoding runs
        // code of the model.
        _ = try key.withBytes { (bytes) throws(LarderError) in
            try database.read(bytes, .mayBlock, fillCache: fillCache, ticket: &ticket) { record, itsVersion in
                found = Record(record)
                version = itsVersion
            }
        }
        try engine.pipeline.wait(for: ticket)
        guard let found else { return nil }
        return try decodedAndAttached(type, found, key, version: version)
    }

    /// Returns the model in the record of an entry in memory. If allowed, keeps the model with the entry.
    func decodedAndAttached<Value: Decodable & Sendable>(
        _ type: Value.Type, _ record: Record, _ key: Key, version: UInt64
    ) throws(LarderError) -> Value? {
        guard version != 0, DecodedSharing.isAllowed(type) else { return try decode(type, record, key) }
        var size = ModelSize(most: database.attachmentBytesMax)
        guard let model = try decode(type, record, key, &size) else { return nil }
        if let bytes = size.bytes {
            let attachment = Attached(model, madeBy: codecIdentity, outerBytes: bytes)
            attachment.attach(to: key, version: version, in: database)
        }
        return model
    }
}
