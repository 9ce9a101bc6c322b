import LarderEngine
import LarderModelCoding
import LarderVocabulary

// Changes of single properties of stored models.

extension Cache {
    /// Changes single properties of a stored model in one atomic step, as ``ModelEdits`` describes. The entry must be
    /// JSON. It keeps its expiry rule and its tags, and counts as stored now.
    /// - Parameters:
    ///   - key: the entry's key.
    ///   - type: the model's type.
    ///   - durability: nil for ``CacheOptions/durability``.
    ///   - body: appends the changes; called once. If it throws, nothing is changed.
    /// - Returns: the model as it was stored.
    /// - Throws: ``LarderError/Code/noSuchEntry`` if there is no fresh entry; ``LarderError/Code/invalidArgument`` if a
    ///   change is impossible; ``LarderError/Code/decoding`` if the value is not JSON, or would no longer be a model of
    ///   this type; ``LarderError/Code/conflict`` if other callers change the entry for 5 seconds; errors of `body`.
    ///   The entry is then unchanged.
    @discardableResult
    public func edit<Value: Codable>(
        _ key: some CacheKey, of type: Value.Type = Value.self, durability: Durability? = nil,
        _ body: (inout ModelEdits<Value>) throws -> Void
    ) throws -> Value {
        let edit = try RunningEdit(key, self, durability, body)
        return try exchange(edit.key, "edit") { try edit.result(for: $0) }
    }

    /// Runs ``edit(_:of:durability:_:)-(CacheKey,Value.Type,Durability?,(ModelEdits<Value>)->Void)`` without blocking
    /// the calling thread.
    @discardableResult
    public func edit<Value: Codable>(
        _ key: some CacheKey, of type: Value.Type = Value.self, durability: Durability? = nil,
        _ body: (inout ModelEdits<Value>) throws -> Void
    ) async throws -> Value {
        let edit = try RunningEdit(key, self, durability, body)
        return try await exchange(edit.key, "edit") { record async throws in try edit.result(for: record) }
    }
}

/// A call of `edit`. Its changes may be applied several times, because other callers may change the entry meanwhile.
private struct RunningEdit<Value: Codable> {
    let key: Key
    private let cache: Cache
    private let durability: Durability?
    private let edits: ModelEdits<Value>

    init(
        _ key: some CacheKey, _ cache: Cache, _ durability: Durability?,
        _ body: (inout ModelEdits<Value>) throws -> Void
    ) throws {
        self.key = try cache.source.key(key, "edit")
        self.cache = cache
        self.durability = durability
        var edits = ModelEdits<Value>(cache.source.codec)
        try body(&edits)
        do throws(ModelEdits<Value>.Impossible) { try edits.check() } catch {
            throw LarderError.invalid(error.message, "edit", cache.name, self.key)
        }
        self.edits = edits
    }

    /// Applies the changes to an entry.
    /// - Returns: the model afterwards, and the write that stores it; nil if nothing is changed.
    func result(for record: Record?) throws(LarderError) -> (Value, EntryWrite?) {
        guard let record else { throw failure(.noSuchEntry, "there is no fresh entry") }
        let (model, changed): (Value, [UInt8]?)
        do throws(ModelEdits<Value>.Impossible) {
            (model, changed) = try record.payload.withUnsafeBufferPointer {
                (text) throws(ModelEdits<Value>.Impossible) in
                try edits.result(of: UnsafeRawBufferPointer(text), storedAs: record.header.codec)
            }
        } catch {
            throw failure(error.isOfDecoding ? .decoding : .invalidArgument, error.message, error.underlying)
        }
        guard let changed else { return (model, nil) }
        try cache.source.verify(model, key, "edit")
        var write = try EntryWrite(.bytes(changed), record.header.codec, key, .keep, [], cache.name, "edit")
        (write.tags, write.condition, write.durability) = (record.tags, .unchanged(record), durability)
        return (model, write)
    }

    private func failure(_ code: LarderError.Code, _ message: String, _ underlying: (any Error)? = nil) -> LarderError {
        LarderError(
            code, message, operation: "edit", database: cache.name, key: key.description, underlying: underlying)
    }
}
