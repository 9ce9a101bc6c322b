import LarderLevelDB
import LarderPlatform

/// Which entries an enumeration reads, and how.
package struct EnumerationOptions: Sendable {
    /// The enumeration includes only keys that begin with these bytes.
    package var prefix: [UInt8]
    /// The key at which the enumeration starts: this key if it exists, else the next one in the direction of the
    /// enumeration.
    package var start: [UInt8]?
    /// Whether to enumerate from the last key to the first, in the order of their bytes.
    package var backward: Bool
    /// Whether to include expired entries that have not been swept yet.
    package var includeExpired: Bool
    /// Whether blocks that are read stay in the block cache. Off by default, so that a scan does not evict frequently
    /// used blocks.
    package var fillCache: Bool

    package init(
        prefix: [UInt8] = [], start: [UInt8]? = nil, backward: Bool = false, includeExpired: Bool = false,
        fillCache: Bool = false
    ) {
        (self.prefix, self.start, self.backward) = (prefix, start, backward)
        (self.includeExpired, self.fillCache) = (includeExpired, fillCache)
    }
}

/// A fresh entry of a database. Borrowed: valid during one call.
package struct EntryView {
    package let key: UnsafeRawBufferPointer
    /// When the value was last written, in milliseconds since 1970.
    package let storedAt: Int64
    /// When the entry expires, in milliseconds since 1970; nil if it does not.
    package let deadline: Int64?
    package let payload: UnsafeRawBufferPointer

    package init(key: UnsafeRawBufferPointer, storedAt: Int64, deadline: Int64?, payload: UnsafeRawBufferPointer) {
        (self.key, self.storedAt, self.deadline, self.payload) = (key, storedAt, deadline, payload)
    }
}

/// Enumerates the entries of a database as they were when the cursor was created, without entries that have expired
/// since. While disk space is tight (``DiskBudget/isTight``), however, a cursor without a snapshot changes to the
/// current entries whenever LevelDB has merged tables, so that the old tables can be removed.
///
/// Merges two sorted sequences: a cursor of LevelDB, and the entries that were only in memory. If a key is in both, the
/// entry in memory is used, because it is newer.
///
/// LevelDB cannot delete the files that a cursor reads, so close or release it soon. `@unchecked Sendable`: used by one
/// thread at a time.
package final class EntryCursor: @unchecked Sendable {
    /// Where the current entry was found: in LevelDB (`below`) or in memory.
    private enum Source {
        case below, memory
        /// LevelDB and memory have the key. The entry in memory is used.
        case both
        /// There is no current entry.
        case end
    }

    private let store: EpochStore
    let database: Database
    private let options: EnumerationOptions
    private let held: StoreCursor
    private let run: OverlaySnapshot
    /// The index of the next or current entry in `run`; out of range after the last one.
    private var place = 0
    private var source = Source.end
    private var hasStarted = false
    private var isClosed = false

    init(_ database: Database, _ view: DatabaseView<StoreCursor>, _ options: EnumerationOptions) {
        self.database = database
        self.options = options
        store = view.store
        held = view.below
        run = view.run
    }

    /// Creates a cursor of LevelDB with these options, and registers it with the store.
    static func hold(
        _ store: EpochStore, _ options: EnumerationOptions, _ snapshot: LarderLevelDB.Snapshot? = nil
    ) throws(LarderError) -> StoreCursor {
        guard store.isMade else { return StoreCursor(nil) }
        let read = ReadOptions(fillCache: options.fillCache, snapshot: snapshot)
        let prefix = [KeyKind.record] + options.prefix
        return try store.adopt("enumerate") { (database) throws(LevelDBError) in
            StoreCursor(try database.cursor(read, prefix: prefix))
        }
    }

    deinit { close() }

    /// Releases the files. ``next()`` throws afterwards. Idempotent.
    package func close() {
        guard !isClosed else { return }
        isClosed = true
        store.release(held)
    }

    /// Passes LevelDB's cursor to `body`. The store cannot be closed meanwhile.
    private func access<Result>(_ body: (LarderLevelDB.Cursor) throws(LevelDBError) -> Result) throws(LarderError)
        -> Result
    {
        if let error = store.endingError("enumerate") { throw error }
        let result: Result? = try store.access("enumerate") { (_) throws(LevelDBError) in
            guard let cursor = held.cursor else { return nil }
            return try body(cursor)
        }
        guard let result else {
            throw isClosed
                ? closedError
                : LarderError(
                    .invalidated,
                    "the enumeration has ended: it kept space that the disk limit needs, or the database was reopened; "
                        + "enumerate again", operation: "enumerate", database: database.name)
        }
        return result
    }

    private var closedError: LarderError {
        LarderError(.closed, "the cursor was closed", operation: "enumerate", database: database.name)
    }

    // MARK: Moving

    /// Moves to the next entry. The first call moves to the first one.
    /// - Returns: false if there is no next entry.
    package func next() throws(LarderError) -> Bool {
        try ForkGuard.check("enumerate")
        while try step() {
            if source != .below, run.withRecord(place, { $0 == nil }) { continue }
            if options.includeExpired { return true }
            let rules = database.rules
            if rules.freshness(try header(rules.purges), now: database.now()) == .fresh { return true }
        }
        return false
    }

    private func step() throws(LarderError) -> Bool {
        let begins = !hasStarted
        hasStarted = true
        if begins { place = firstPlace() } else if source != .below { place += options.backward ? -1 : 1 }
        let moves = source != .memory
        if held.isEmpty {
            if let error = store.endingError("enumerate") { throw error }
            guard !isClosed else { throw closedError }
            source = hasPlace ? .memory : .end
            return hasPlace
        }
        source = try access { (cursor) throws(LevelDBError) in
            if begins {
                try Self.begin(cursor, options)
            } else if moves, cursor.isValid {
                if options.backward { try cursor.previous() } else { try cursor.next() }
            }
            guard cursor.isValid else { return hasPlace ? .memory : .end }
            guard hasPlace else { return .below }
            let order = try cursor.withKey { run.compare(place, UnsafeRawBufferPointer(rebasing: $0.dropFirst())) }
            if order == 0 { return .both }
            return (order < 0) != options.backward ? .memory : .below
        }
        return source != .end
    }

    // MARK: Reading many entries

    /// The number of entries, and of their bytes, that are read with the locks taken once.
    private static let sliceCount = 64
    private static let sliceBytes = 64 << 10

    /// Passes the next entries to `body`, without copies, until it returns false. Faster than ``next()``, which must not
    /// be called before or after.
    /// - Parameter body: must not use the database.
    package func readAll(_ body: (EntryView) -> Bool) throws(LarderError) { while try readSlice(body) {} }

    /// - Returns: whether there may be more entries that are wanted.
    private func readSlice(_ body: (EntryView) -> Bool) throws(LarderError) -> Bool {
        try ForkGuard.check("enumerate")
        var slice = Slice(database, options)
        let begins = !hasStarted
        hasStarted = true
        if begins { place = firstPlace() }
        var isAtEnd = true
        if held.isEmpty {
            if let error = store.endingError("enumerate") { throw error }
            guard !isClosed else { throw closedError }
        } else {
            isAtEnd = try access { (cursor) throws(LevelDBError) in
                if begins { try Self.begin(cursor, options) }
                try cursor.walk(backward: options.backward) { stored, record in
                    guard slice.continues else { return false }
                    let key = UnsafeRawBufferPointer(rebasing: stored[1...])
                    if hasPlace, readMemory(before: key, &slice, body) { return true }
                    guard slice.continues else { return false }
                    slice.pass(key, record, body)
                    return true
                }
                return !cursor.isValid
            }
        }
        if isAtEnd { _ = readMemory(before: nil, &slice, body) }
        if let (defect, key) = slice.failure { throw Database.defect(defect, database: database.name, key: key) }
        return slice.isWanted && (!isAtEnd || hasPlace)
    }

    /// Passes on the entries in memory before a key, or all if it is nil.
    /// - Returns: whether memory has the key too, and its entry was passed on.
    private func readMemory(
        before key: UnsafeRawBufferPointer?, _ slice: inout Slice, _ body: (EntryView) -> Bool
    ) -> Bool {
        while slice.continues, hasPlace {
            let order = key.map { run.compare(place, $0) } ?? 0
            if order != 0, (order > 0) != options.backward { return false }
            run.withEntry(place) { key, record in if let record { slice.pass(key, record, body) } }
            place += options.backward ? -1 : 1
            if order == 0, key != nil { return true }
        }
        return false
    }

    /// Some entries that are read together, with the same time.
    private struct Slice {
        private let rules: FreshnessRules
        private let now: Int64
        private let includesExpired: Bool
        private var left = EntryCursor.sliceCount
        private var bytesLeft = EntryCursor.sliceBytes
        private(set) var isWanted = true
        private(set) var failure: (defect: RecordHeader.Defect, key: Key)?

        init(_ database: Database, _ options: EnumerationOptions) {
            (rules, now, includesExpired) = (database.rules, database.now(), options.includeExpired)
        }

        var continues: Bool { isWanted && left > 0 && bytesLeft > 0 }

        /// Passes an entry on, if it is fresh.
        @inline(__always)
        mutating func pass(
            _ key: UnsafeRawBufferPointer, _ record: UnsafeRawBufferPointer, _ body: (EntryView) -> Bool
        ) {
            (left, bytesLeft) = (left - 1, bytesLeft - record.count)
            do throws(RecordHeader.Defect) {
                let header = try RecordHeader(parsing: record, rules.purges)
                guard includesExpired || rules.freshness(header, now: now) == .fresh else { return }
                isWanted = body(
                    EntryView(
                        key: key, storedAt: header.storedAt, deadline: rules.deadline(header),
                        payload: UnsafeRawBufferPointer(rebasing: record[header.byteCount...])))
            } catch {
                (isWanted, failure) = (false, (error, Key(key)))
            }
        }
    }

    private var hasPlace: Bool { (0..<run.count).contains(place) }

    private func firstPlace() -> Int {
        guard let start = options.start else { return options.backward ? run.count - 1 : 0 }
        let bound = start.withUnsafeBytes { run.lowerBound($0) }
        guard options.backward else { return bound }
        let isThere = bound < run.count && start.withUnsafeBytes { run.compare(bound, $0) == 0 }
        return isThere ? bound : bound - 1
    }

    private static func begin(_ cursor: LarderLevelDB.Cursor, _ options: EnumerationOptions) throws(LevelDBError) {
        switch (options.start, options.backward) {
        case (nil, false): try cursor.seekToFirst()
        case (nil, true): try cursor.seekToLast()
        case (let start?, false): try cursor.seek(to: [KeyKind.record] + start)
        case (let start?, true): try cursor.seekBackward(to: [KeyKind.record] + start)
        }
    }

    // MARK: The current entry

    /// Runs `body` on the stored bytes of the current entry.
    private func withStored<Result>(_ body: (UnsafeRawBufferPointer) -> Result) throws(LarderError) -> Result {
        guard source == .below else {
            if let error = store.endingError("enumerate") { throw error }
            return run.withRecord(place) { body($0 ?? UnsafeRawBufferPointer(start: nil, count: 0)) }
        }
        return try access { (cursor) throws(LevelDBError) in try cursor.withValue(body) }
    }

    /// The current entry's key.
    package func key() throws(LarderError) -> Key {
        guard source == .below else {
            if let error = store.endingError("enumerate") { throw error }
            return run.key(place)
        }
        return Key(stored: try access { (cursor) throws(LevelDBError) in try cursor.withKey { [UInt8]($0) } })
    }

    /// The current entry's header, without copying its payload.
    package func header() throws(LarderError) -> RecordHeader { try header(database.rules.purges) }

    private func header(_ purges: TagPurges?) throws(LarderError) -> RecordHeader {
        switch try withStored({ RecordHeader.read($0, purges) }) {
        case .success(let header): return header
        case .failure(let defect): throw Database.defect(defect, database: database.name, key: try key())
        }
    }

    /// The current entry.
    package func record() throws(LarderError) -> Record {
        let stored = try withStored { [UInt8]($0) }
        do throws(RecordHeader.Defect) {
            return try Record(parsing: stored, database.rules.purges)
        } catch {
            throw Database.defect(error, database: database.name, key: try key())
        }
    }

    /// The current entry's header and the length of its payload in bytes. For an invalid header, returns nil and the
    /// length of the whole record.
    func headerAndLength() throws(LarderError) -> (RecordHeader?, Int) {
        let purges = database.rules.purges
        return try withStored { bytes in
            let header = try? RecordHeader(parsing: bytes, purges)
            return (header, bytes.count - (header?.byteCount ?? 0))
        }
    }

    /// The length of the current entry's payload, in bytes.
    package func payloadCount() throws(LarderError) -> Int {
        let header = try header()
        return max(0, try withStored { $0.count } - header.byteCount)
    }
}

extension Database {
    /// Creates a cursor over the database's entries, including all changes applied before this call. May block, because
    /// it waits until these changes are committed.
    /// - Returns: nil if the database has no files.
    package func cursor(_ options: EnumerationOptions = EnumerationOptions()) throws(LarderError) -> EntryCursor? {
        let view = try view("enumerate", prefix: options.prefix) { (store) throws(LarderError) in
            try EntryCursor.hold(store, options)
        }
        return view.map { EntryCursor(self, $0, options) }
    }

    /// Writes all entries that are only in memory to LevelDB. May block. Only needed before LevelDB's files are read
    /// without the engine: the engine reads memory too.
    package func flush() throws(LarderError) {
        guard try readableStore(appliedState, "flush") != nil else { return }
        try checkpointer.flush(self)
    }

    /// Returns the size of the database's files in bytes.
    package func byteCountOnDisk() -> Int { files.byteCount }
}

/// A cursor of LevelDB that is registered with its store, so that it is closed before LevelDB is.
///
/// `@unchecked Sendable`: used by one thread at a time, with the store's gate held for reading. Invalidated by that
/// thread, or with the gate held for writing.
final class StoreCursor: StoreChild, @unchecked Sendable {
    private(set) var cursor: LarderLevelDB.Cursor?
    /// Whether there is nothing to read, because the database's LevelDB had no files. Such a cursor is not registered
    /// with the store.
    let isEmpty: Bool

    /// - Parameter cursor: nil if there is no LevelDB yet.
    init(_ cursor: LarderLevelDB.Cursor?) {
        self.cursor = cursor
        isEmpty = cursor == nil
    }

    func invalidate() {
        cursor?.close()
        cursor = nil
    }
}
