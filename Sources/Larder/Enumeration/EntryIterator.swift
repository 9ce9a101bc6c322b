import LarderEngine

/// A run over an ``EntrySequence``: one enumeration of its entries.
///
/// Keeps the larder open, and obsolete files on the disk, until it reaches the end, or is closed or released. Single
/// owner: used by one thread at a time.
public final class EntryIterator<Value: Decodable> {
    private let database: Database
    private let options: EntryOptions
    private let filters: [CacheEntry<Value>.Filter]
    private var remaining: Int
    /// The engine keeps the larder open, even if the cache was closed.
    private var run: Run?
    /// Increases with every move, so that an entry can check whether the cursor is still at that entry.
    private var position = 0
    /// The current entry's decoded model, if any.
    private var decoded: Value?

    private typealias Run = (cursor: EntryCursor, source: CacheSource, engine: Engine)

    init(_ source: CacheSource, _ options: EntryOptions, _ filters: [CacheEntry<Value>.Filter]) throws(LarderError) {
        database = source.database
        self.options = options
        self.filters = filters
        remaining = try options.checkedLimit(database.name)
        guard remaining > 0 else { return }
        run = try source.cursor(options.enumeration).map { ($0, source, $1) }
    }

    deinit { close() }

    /// Returns the next entry; nil at the end.
    /// - Throws: ``LarderError/Code/purged`` and ``LarderError/Code/deleted`` if the database was purged or deleted
    ///   during the run; errors of filters.
    public func next() throws(LarderError) -> CacheEntry<Value>? {
        while let entry = try step() {
            guard try filters.allow(entry) else { continue }
            remaining -= 1
            return entry
        }
        return nil
    }

    /// Returns the next entry before filtering.
    private func step() throws(LarderError) -> CacheEntry<Value>? {
        position += 1
        decoded = nil
        while remaining > 0, let run, try run.cursor.next() {
            let key = try run.cursor.key()
            switch options.position(of: key.bytes) {
            case .before: continue
            case .inside: return CacheEntry(content: .current(self, position: position), storedKey: key)
            case .behind: remaining = 0
            }
        }
        close()
        return nil
    }

    /// Ends the run: there is no next entry, and values of entries can no longer be read. Idempotent.
    public func close() {
        run?.cursor.close()
        run = nil
    }

    // MARK: Called by entries

    var databaseName: String { database.name }

    private func run(at position: Int, _ key: Key) throws(LarderError) -> Run {
        guard position == self.position, let run else {
            throw LarderError(
                .invalidArgument,
                "the enumeration has moved past this entry; an entry can be read only before the next step",
                operation: "enumerate", database: database.name, key: key.description)
        }
        return run
    }

    func record(at position: Int, _ key: Key) throws(LarderError) -> Record {
        try run(at: position, key).cursor.record()
    }

    func info(at position: Int, _ key: Key) throws(LarderError) -> EntryInfo {
        let run = try run(at: position, key)
        return run.source.info(
            try run.cursor.header(), byteCount: try run.cursor.payloadCount(), now: database.now())
    }

    func value(at position: Int, _ key: Key) throws(LarderError) -> Value {
        let run = try run(at: position, key)
        if let decoded { return decoded }
        let value = try run.source.decodeOrThrow(Value.self, try run.cursor.record(), key)
        decoded = value
        return value
    }

    /// Like ``value(at:_:)``, but returns nil if decoding fails and ``CacheOptions/onDecodingFailure`` treats that as a
    /// miss.
    func valueIfAny(at position: Int, _ key: Key) throws(LarderError) -> Value? {
        let run = try run(at: position, key)
        if let decoded { return decoded }
        decoded = try run.source.decode(Value.self, try run.cursor.record(), key)
        return decoded
    }
}

extension Array {
    /// Whether all filters let an entry pass.
    func allow<Value>(_ entry: CacheEntry<Value>) throws(LarderError) -> Bool
    where Element == CacheEntry<Value>.Filter {
        for filter in self {
            do {
                guard try filter(entry) else { return false }
            } catch let error as LarderError {
                throw error
            } catch {
                throw LarderError(
                    .filterFailed, "the filter threw \(type(of: error))", operation: "enumerate",
                    key: entry.storedKey.description, underlying: error)
            }
        }
        return true
    }
}
