/// One run over an ``EntrySequence``.
///
/// Keeps the larder open, and files on the disk, until it is at its end, closed or gone. Single owner: used by one
/// thread at a time.
public final class EntryIterator<Value: Decodable> {
    private let source: CacheSource
    private let filters: [(CacheEntry<Value>) throws -> Bool]
    private var remaining: Int
    private var run: (cursor: EntryCursor, engine: Engine)?
    /// Goes up with every move, so that an entry knows whether the cursor is still at it.
    private var position = 0
    /// The current entry's model, if it was decoded.
    private var decoded: Value?

    init(_ sequence: EntrySequence<Value>) throws(LarderError) {
        source = sequence.source
        filters = sequence.filters
        remaining = sequence.options.limit ?? .max
        if remaining > 0 { run = try source.cursor(sequence.options.enumeration) }
    }

    deinit { close() }

    /// The next entry; nil at the end.
    /// - Throws: ``LarderError``, or what a filter throws. ``LarderError/Code/purged`` and
    ///   ``LarderError/Code/deleted`` when the database went away under the run.
    public func next() throws -> CacheEntry<Value>? {
        while let entry = try step() {
            guard try filters.allSatisfy({ try $0(entry) }) else { continue }
            remaining -= 1
            return entry
        }
        return nil
    }

    /// The next entry, filters aside.
    private func step() throws(LarderError) -> CacheEntry<Value>? {
        position += 1
        decoded = nil
        guard remaining > 0, let run, try run.cursor.next() else {
            close()
            return nil
        }
        return CacheEntry(iterator: self, position: position, storedKey: try run.cursor.key())
    }

    /// Ends the run: the next entry is nil, and entries can no longer be asked for their values. Idempotent.
    public func close() {
        run?.cursor.close()
        run = nil
    }

    // MARK: What entries ask

    var databaseName: String { source.database.name }

    private func cursor(at position: Int, _ key: Key) throws(LarderError) -> EntryCursor {
        guard position == self.position, let run else {
            throw LarderError(
                .invalidArgument,
                "the enumeration has moved on from this entry; ask for what you need of it before the next step",
                operation: "enumerate", database: source.database.name, key: key.description)
        }
        return run.cursor
    }

    func record(at position: Int, _ key: Key) throws(LarderError) -> Record {
        try cursor(at: position, key).record()
    }

    func info(at position: Int, _ key: Key) throws(LarderError) -> EntryInfo {
        let cursor = try cursor(at: position, key)
        return EntryInfo(
            try cursor.header(), byteCount: try cursor.payloadCount(), rules: source.database.rules,
            now: source.database.now())
    }

    func value(at position: Int, _ key: Key) throws(LarderError) -> Value {
        let cursor = try cursor(at: position, key)
        if let decoded { return decoded }
        let value = try source.decodeOrThrow(Value.self, try cursor.record(), key)
        decoded = value
        return value
    }

    /// As ``value(at:_:)``, nil where a failure to decode counts as a miss.
    func valueIfAny(at position: Int, _ key: Key) throws(LarderError) -> Value? {
        let cursor = try cursor(at: position, key)
        if let decoded { return decoded }
        decoded = try source.decode(Value.self, try cursor.record(), key)
        return decoded
    }
}
