import LarderLevelDB

/// Finds the entries of a database that have a deadline of their own in a range of time, slice by slice: first the
/// dirty entries in memory, shard by shard, then those in LevelDB.
///
/// - Entries are found in their committed state. An entry that is changed after the scan began may be found in an
///   earlier or later state, or not at all: the caller learns of it from the stream of changes.
/// - An entry whose tag was purged is not found.
///
/// Not thread-safe. May block.
package struct DeadlineScan {
    /// The entries that are searched for, and how.
    package enum Kind: CaseIterable, Sendable {
        /// The entries that the expiry index locates (``ExpiryIndex/locates(_:)``). Reads the index from the first to
        /// the last bucket time that such an entry may have, and the header of each entry in it.
        case indexed
        /// All other entries. Reads the headers of all entries.
        case others

        package init(_ header: RecordHeader) { self = ExpiryIndex.locates(header) ? .indexed : .others }
    }

    package struct Found: Sendable {
        package let key: [UInt8]
        package let deadline: Int64
        /// Whether the entry was dirty: if it is written to LevelDB during the scan, it is found a second time.
        package let mayRepeat: Bool
    }

    private enum Place {
        /// The index of the shard whose dirty entries are read next.
        case memory(Int)
        /// The first key of LevelDB that was not read yet.
        case levelDB([UInt8])
        case end
    }

    private let database: Database
    private let kind: Kind
    private let range: Range<Int64>
    private var place = Place.memory(0)

    /// The maximum number of index keys, and of records, that a slice reads. A header that the index refers to may
    /// need a read of the disk.
    private static let indexKeysPerSlice = 128
    private static let recordsPerSlice = 512

    package init(_ database: Database, _ kind: Kind, _ range: Range<Int64>) {
        (self.database, self.kind, self.range) = (database, kind, range)
    }

    /// Returns the next slice of entries, which may be empty; nil at the end.
    package mutating func next() throws(LarderError) -> [Found]? {
        while true {
            var copy = self
            let before = database.checkpointer.rollbackCount
            guard let found = try copy.read() else { return nil }
            // What was read may not be committed yet. If its commit fails, read again.
            database.pipeline.drain()
            guard database.checkpointer.rollbackCount == before else { continue }
            self = copy
            return found
        }
    }

    private mutating func read() throws(LarderError) -> [Found]? {
        if case .end = place { return nil }
        guard let store = try database.readableStore(database.appliedState, "watch") else { return nil }
        switch place {
        case .memory(let index): return readMemory(index)
        case .levelDB(let start) where store.isMade:
            return try kind == .indexed ? readIndex(from: start, store) : readRecords(from: start, store)
        case .levelDB, .end: return nil
        }
    }

    /// Returns the deadline if the entry is searched for.
    private func deadline(_ header: RecordHeader?) -> Int64? {
        guard let header, case .own(let deadline) = header.rule, range.contains(deadline), header.tagsEnd == .max,
            Kind(header) == kind
        else { return nil }
        return deadline
    }

    private mutating func readMemory(_ index: Int) -> [Found] {
        let purges = database.rules.purges
        var found: [Found] = []
        let shard = database.shards[index]
        // The limit of the journal bounds the number of dirty entries, so this takes at most a few milliseconds.
        shard.lock.withLock {
            shard.table.forEachDirty { entry in
                guard let deadline = deadline(entry.header(purges)) else { return }
                found.append(Found(key: Array(entry.key), deadline: deadline, mayRepeat: true))
            }
        }
        let start = kind == .indexed ? ExpiryIndex.start(KeyKind.ownDeadline, 0) : [KeyKind.record]
        place = index + 1 < Shard.count ? .memory(index + 1) : .levelDB(start)
        return found
    }

    private mutating func readRecords(from start: [UInt8], _ store: EpochStore) throws(LarderError) -> [Found] {
        var records = EvictionRange()
        try records.collect(
            store, from: start, bytesMax: .max, entriesMax: Self.recordsPerSlice, database.rules.purges,
            operation: "watch")
        place = records.next.map { .levelDB($0) } ?? .end
        return records.entries.compactMap { record in
            guard let deadline = deadline(record.header) else { return nil }
            let key = Key(stored: records.key(record))
            // A dirty entry was found in memory, or has changed since.
            if case .newer = RecordInMemory(key, in: database, nil) { return nil }
            return Found(key: Array(key.bytes), deadline: deadline, mayRepeat: false)
        }
    }

    private mutating func readIndex(from start: [UInt8], _ store: EpochStore) throws(LarderError) -> [Found] {
        let keys = try collect(from: start, store)
        let (purges, policy) = (database.rules.purges, database.policy)
        var found: [Found] = []
        for index in keys {
            guard let key = index.withUnsafeBytes({ ExpiryIndex.parse($0)?.key }) else { continue }
            var header: RecordHeader?
            switch RecordInMemory(key, in: database, purges) {
            case .newer: continue
            case .known(let known): header = known?.header
            case .unknown: header = try store.header(of: key, purges).flatMap { try? $0.0.get() }
            }
            // The index may also have old keys of the entry.
            guard let deadline = deadline(header), let header,
                ExpiryIndex.key(for: key, header, policy: policy) == index
            else { continue }
            found.append(Found(key: Array(key.bytes), deadline: deadline, mayRepeat: false))
        }
        return found
    }

    /// Returns the next index keys with bucket times that entries in the range may have.
    private mutating func collect(from start: [UInt8], _ store: EpochStore) throws(LarderError) -> [[UInt8]] {
        var found: [[UInt8]] = []
        let buckets = ExpiryIndex.buckets(ofDeadlines: range)
        place = try store.access("watch") { (leveldb) throws(LevelDBError) in
            var options = ReadOptions()
            options.fillCache = false
            let cursor = try leveldb.cursor(options, prefix: [KeyKind.ownDeadline])
            defer { cursor.close() }
            for times in buckets {
                let first = ExpiryIndex.start(KeyKind.ownDeadline, times.lowerBound)
                try cursor.seek(to: first.lexicographicallyPrecedes(start) ? start : first)
                while cursor.isValid {
                    let key = cursor.key
                    guard key.withUnsafeBytes({ ExpiryIndex.parse($0)?.bucket ?? 0 }) <= times.upperBound else { break }
                    guard found.count < Self.indexKeysPerSlice else { return .levelDB(key) }
                    found.append(key)
                    try cursor.next()
                }
            }
            return .end
        }
        return found
    }
}

/// What memory knows of a key's record in LevelDB.
enum RecordInMemory {
    /// Memory has a newer state.
    case newer
    /// The header and the length in bytes of LevelDB's record; nil if the key has none.
    case known((header: RecordHeader, byteCount: Int)?)
    /// LevelDB must be read.
    case unknown

    /// - Parameter purges: as for ``RecordHeader``.
    init(_ key: Key, in database: Database, _ purges: TagPurges?) {
        self = database.shards.withLocked(key.hash) { shard in
            guard let entry = shard.find(key) else { return .unknown }
            if entry.isDirty { return .newer }
            guard entry.hasRecord else { return .known(nil) }
            guard let record = try? entry.record(purges) else { return .unknown }
            return .known((record.header, record.byteCount))
        }
    }
}
