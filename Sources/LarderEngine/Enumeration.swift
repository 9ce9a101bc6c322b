import LevelDB

/// What an enumeration goes over, and how.
package struct EnumerationOptions: Sendable {
    /// Only keys that begin with these bytes.
    package var prefix: [UInt8]
    /// Where to begin: at this key if it is there, else at the next one in the direction of travel.
    package var start: [UInt8]?
    /// From the last key to the first, in the order of their bytes.
    package var backward: Bool
    /// Whether entries that are no longer fresh, but not yet swept, are shown.
    package var includeExpired: Bool
    /// Whether blocks that are read stay in the block cache. Off, so that a scan does not push out what is hot.
    package var fillCache: Bool

    package init(
        prefix: [UInt8] = [], start: [UInt8]? = nil, backward: Bool = false, includeExpired: Bool = false,
        fillCache: Bool = false
    ) {
        self.prefix = prefix
        self.start = start
        self.backward = backward
        self.includeExpired = includeExpired
        self.fillCache = fillCache
    }
}

/// Goes over the entries of a database as they were when the cursor was made; what expires meanwhile is left out.
///
/// Pins the files it reads: close it, or let it go, soon. Single owner: used by one thread at a time, which is the proof
/// for `@unchecked Sendable`.
package final class EntryCursor: @unchecked Sendable {
    private let store: EpochStore
    private let database: Database
    private let options: EnumerationOptions
    private let held: HeldCursor
    private var hasStarted = false
    private var isClosed = false

    init(_ database: Database, _ store: EpochStore, _ options: EnumerationOptions, _ snapshot: LevelDB.Snapshot?)
        throws(LarderError)
    {
        self.database = database
        self.store = store
        self.options = options
        var read = ReadOptions()
        read.fillCache = options.fillCache
        read.snapshot = snapshot
        let prefix = [KeyKind.record] + options.prefix
        held = try store.adopt("enumerate") { (database) throws(LevelDBError) in
            HeldCursor(try database.cursor(read, prefix: prefix))
        }
    }

    deinit { close() }

    /// Lets go of the files. Idempotent; afterwards ``next()`` throws.
    package func close() {
        guard !isClosed else { return }
        isClosed = true
        store.release(held)
    }

    /// Runs `body` on the cursor beneath while the store cannot go away.
    private func access<Result>(_ body: (LevelDB.Cursor) throws(LevelDBError) -> Result) throws(LarderError) -> Result {
        if let error = store.endingError("enumerate") { throw error }
        let result: Result? = try store.access("enumerate") { (_) throws(LevelDBError) in
            guard let cursor = held.cursor else { return nil }
            return try body(cursor)
        }
        guard let result else {
            throw isClosed
                ? LarderError(.closed, "the cursor was closed", operation: "enumerate", database: database.name)
                : LarderError(
                    .invalidated, "the database was reopened after a failed write; enumerate again",
                    operation: "enumerate", database: database.name)
        }
        return result
    }

    /// Goes to the next entry, or to the first.
    /// - Returns: false when there are no more.
    package func next() throws(LarderError) -> Bool {
        while try step() {
            if options.includeExpired { return true }
            if database.rules.freshness(try header(), now: database.now()) == .fresh { return true }
        }
        return false
    }

    private func step() throws(LarderError) -> Bool {
        let begin = !hasStarted
        hasStarted = true
        return try access { [options] (cursor) throws(LevelDBError) in
            switch (begin, options.backward) {
            case (false, false): if cursor.isValid { try cursor.next() }
            case (false, true): if cursor.isValid { try cursor.previous() }
            case (true, _): try Self.begin(cursor, options)
            }
            return cursor.isValid
        }
    }

    private static func begin(_ cursor: LevelDB.Cursor, _ options: EnumerationOptions) throws(LevelDBError) {
        switch (options.start, options.backward) {
        case (nil, false): try cursor.seekToFirst()
        case (nil, true): try cursor.seekToLast()
        case (let start?, false): try cursor.seek(to: [KeyKind.record] + start)
        case (let start?, true): try cursor.seekBackward(to: [KeyKind.record] + start)
        }
    }

    /// The current entry's key.
    package func key() throws(LarderError) -> Key {
        Key(stored: try access { (cursor) throws(LevelDBError) in try cursor.withKey { [UInt8]($0) } })
    }

    /// The current entry's header, without copying its payload.
    package func header() throws(LarderError) -> RecordHeader {
        let parsed = try access { (cursor) throws(LevelDBError) in
            try cursor.withValue { bytes in
                Result { () throws(RecordHeader.Defect) in try RecordHeader(parsing: bytes) }
            }
        }
        switch parsed {
        case .success(let header): return header
        case .failure(let defect): throw Database.defect(defect, database: database.name, key: try key())
        }
    }

    /// The current entry.
    package func record() throws(LarderError) -> Record {
        let stored = try access { (cursor) throws(LevelDBError) in try cursor.withValue { [UInt8]($0) } }
        do throws(RecordHeader.Defect) {
            return try Record(parsing: stored)
        } catch {
            throw Database.defect(error, database: database.name, key: try key())
        }
    }

    /// The current entry's header, nil where it cannot be read, and the length of its payload in bytes.
    func shape() throws(LarderError) -> (RecordHeader?, Int) {
        try access { (cursor) throws(LevelDBError) in
            try cursor.withValue { bytes in
                let header = try? RecordHeader(parsing: bytes)
                return (header, bytes.count - (header?.byteCount ?? 0))
            }
        }
    }

    /// The length of the current entry's payload, in bytes.
    package func payloadCount() throws(LarderError) -> Int {
        let header = try header()
        let count = try access { (cursor) throws(LevelDBError) in try cursor.withValue { $0.count } }
        return max(0, count - header.byteCount)
    }
}

extension Database {
    /// A cursor over everything applied before the call. Waits until that is committed, so it may block.
    /// - Returns: nil when the database has no files.
    package func cursor(_ options: EnumerationOptions = EnumerationOptions()) throws(LarderError) -> EntryCursor? {
        guard let store = try settledStore("enumerate") else { return nil }
        return try EntryCursor(self, store, options, nil)
    }

    /// The store with everything that was applied before the call; nil when there are no files.
    func settledStore(_ operation: String) throws(LarderError) -> EpochStore? {
        try ForkGuard.check(operation)
        _ = try readableStore(appliedState, operation)
        pipeline.drain()
        return try readableStore(durableState, operation)
    }

    /// How many entries there are. Reads the headers of all; the answer is kept until the next write.
    /// - Parameter includingExpired: also those that are no longer fresh but not yet swept, which costs less.
    package func count(includingExpired: Bool) throws(LarderError) -> Int {
        guard let store = try settledStore("count") else { return 0 }
        if includingExpired { return try store.countRecords() }
        let cursor = try EntryCursor(self, store, EnumerationOptions(), nil)
        var count = 0
        while try cursor.next() { count += 1 }
        return count
    }

    /// The bytes of the database's files.
    package func byteCountOnDisk() -> Int { FileSystem.size(directory) }
}

extension EpochStore {
    /// How many records there are, expired ones too. The answer is kept until the next write.
    func countRecords() throws(LarderError) -> Int {
        let generation = writeGeneration
        if let known = knownCount(at: generation) { return known }
        let counter = try adopt("count") { (database) throws(LevelDBError) in
            var options = ReadOptions()
            options.fillCache = false
            let cursor = try database.cursor(options, prefix: [KeyKind.record])
            try cursor.seekToFirst()
            return HeldCursor(cursor)
        }
        defer { release(counter) }
        var total = 0
        // In slices, so that whoever wants to close or reopen the store is not kept waiting.
        while try access("count", { (_) throws(LevelDBError) in try counter.count(4096, &total) }) {}
        guard counter.cursor != nil else {
            throw LarderError(
                .invalidated, "the database was reopened after a failed write; count again", operation: "count",
                database: databaseName)
        }
        remember(count: total, at: generation)
        return total
    }
}

/// A cursor of LevelDB as a child of a store.
///
/// The proof for `@unchecked Sendable`: it is used by the one owner of what holds it, with the store's gate held for
/// reading, and invalidated by that owner or with the gate held for writing.
final class HeldCursor: StoreChild, @unchecked Sendable {
    private(set) var cursor: LevelDB.Cursor?

    init(_ cursor: LevelDB.Cursor) { self.cursor = cursor }

    func invalidate() {
        cursor?.close()
        cursor = nil
    }

    /// Goes over at most `most` entries.
    /// - Returns: whether there are more.
    func count(_ most: Int, _ total: inout Int) throws(LevelDBError) -> Bool {
        guard let cursor else { return false }
        for _ in 0..<most {
            guard cursor.isValid else { return false }
            total += 1
            try cursor.next()
        }
        return true
    }
}
