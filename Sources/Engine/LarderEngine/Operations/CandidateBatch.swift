import LarderPlatform

/// Some candidates of a query, with copies of their entries, in reused memory.
package struct CandidateBatch {
    /// What was found under the key of a candidate.
    package enum Found {
        /// There is no fresh entry.
        case absent
        case entry(EntryView)
        /// The entry is long, or LevelDB has to be read: call ``Database/get(_:now:fillCache:)``.
        case unread
    }

    /// Borrowed: valid during one call.
    package struct Candidate {
        package let term: UnsafeRawBufferPointer
        package let key: UnsafeRawBufferPointer
        /// The hash of the key, as in ``Key/hash(_:)``.
        package let hash: Int
        package let found: Found
    }

    private enum Copy {
        case absent, unread
        case fresh(storedAt: Int64, deadline: Int64?, payload: Range<Int>)
    }

    private struct Item {
        /// The offset of the term, which the key follows.
        var start: Int
        var termCount: Int
        var keyCount: Int
        var hash: Int
        var copy = Copy.absent
    }

    private var bytes: [UInt8] = []
    private var items: [Item] = []

    /// The length in bytes from which a record is not copied, and the size of the batch above which none is.
    private static let recordBytesMax = 64 << 10
    private static let bytesMax = 512 << 10
    /// Both, if the entries are read at one instant.
    private static let atOnceBytesMax = 4 << 20

    package init() {}

    package var count: Int { items.count }

    /// Passes a candidate to `body`.
    package func withCandidate<Result, Failure: Error>(
        _ index: Int, _ body: (Candidate) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        try bytes.withUnsafeBufferPointer { (buffer) throws(Failure) in
            try body(Self.candidate(items[index], UnsafeRawBufferPointer(buffer)))
        }
    }

    /// Passes the candidates to `body`, until it returns false.
    package func withEach<Failure: Error>(_ body: (Candidate) throws(Failure) -> Bool) throws(Failure) {
        try bytes.withUnsafeBufferPointer { (buffer) throws(Failure) in
            for item in items {
                guard try body(Self.candidate(item, UnsafeRawBufferPointer(buffer))) else { return }
            }
        }
    }

    private static func candidate(_ item: Item, _ bytes: UnsafeRawBufferPointer) -> Candidate {
        let key = key(item, bytes)
        let found: Found =
            switch item.copy {
            case .absent: .absent
            case .unread: .unread
            case .fresh(let storedAt, let deadline, let place):
                .entry(
                    EntryView(
                        key: key, storedAt: storedAt, deadline: deadline,
                        payload: UnsafeRawBufferPointer(rebasing: bytes[place])))
            }
        let term = UnsafeRawBufferPointer(rebasing: bytes[item.start..<(item.start + item.termCount)])
        return Candidate(term: term, key: key, hash: item.hash, found: found)
    }

    private static func key(_ item: Item, _ bytes: UnsafeRawBufferPointer) -> UnsafeRawBufferPointer {
        let start = item.start + item.termCount
        return UnsafeRawBufferPointer(rebasing: bytes[start..<(start + item.keyCount)])
    }

    // MARK: Filling

    fileprivate mutating func removeAll() {
        bytes.removeAll(keepingCapacity: bytes.capacity <= 2 * Self.bytesMax)
        items.removeAll(keepingCapacity: true)
    }

    /// - Parameters:
    ///   - hint: the term and the key.
    ///   - hash: that of the key; nil if it is not known.
    fileprivate mutating func add(_ hint: UnsafeRawBufferPointer, termCount: Int, hash: Int? = nil) {
        if items.isEmpty {
            bytes.reserveCapacity(4096)
            items.reserveCapacity(16)
        }
        let hash = hash ?? Key.hash(UnsafeRawBufferPointer(rebasing: hint[termCount...]))
        items.append(
            Item(start: bytes.count, termCount: termCount, keyCount: hint.count - termCount, hash: hash))
        bytes.append(contentsOf: hint)
    }

    /// Replaces the content by the entries of keys, with empty terms. Waits until they are committed.
    package mutating func read(_ keys: [Key], in database: Database) throws(LarderError) {
        removeAll()
        for key in keys { add(key) }
        var ticket = CommitTicket.none
        look(in: database, counts: false, &ticket)
        try database.pipeline.wait(for: ticket)
    }

    private mutating func add(_ key: Key) { key.withBytes { add($0, termCount: 0, hash: key.hash) } }

    /// Like ``read(_:in:)``, but reads all entries at one instant, between two commits: holds all shard locks of the
    /// database. So there should be few keys.
    /// - Parameters:
    ///   - most: the number of unpublished changes above which nothing is read.
    ///   - keys: returns the keys; nil to read nothing. Called with the locks held: it must not call the engine. It gets
    ///     the changes that are applied, but may not be published yet, and the number of the last applied commit unit.
    /// - Returns: false if nothing was read.
    package mutating func readAtOnce(
        in database: Database, most: Int, _ keys: ([EntryChange], UInt64) -> [Key]?
    ) throws(LarderError) -> Bool {
        removeAll()
        let pipeline = database.pipeline
        var ticket = CommitTicket.none
        database.shards.lockAll()
        let unpublished = pipeline.unpublishedChanges(of: database, most: most)
        let found = unpublished.flatMap { keys($0, pipeline.everythingApplied.sequence) }
        if let found, !found.isEmpty {
            for key in found { add(key) }
            look(in: database, counts: false, areLocked: true, &ticket)
        }
        database.shards.unlockAll()
        if unpublished == nil { pipeline.drain() }
        try pipeline.wait(for: ticket)
        return found != nil
    }

    /// Looks up the entries in memory. First prefetches the memory of all keys, so that the CPU loads the entries
    /// concurrently.
    /// - Parameters:
    ///   - counts: whether found entries count as hits and as recently used.
    ///   - areLocked: whether the locks of all shards are held.
    fileprivate mutating func look(
        in database: Database, counts: Bool, areLocked: Bool = false, _ ticket: inout CommitTicket
    ) {
        let now = database.now()
        let recordBytesMax = areLocked ? Self.atOnceBytesMax : Self.recordBytesMax
        let bytesMax = areLocked ? Self.atOnceBytesMax : Self.bytesMax
        for item in items { database.shards.with(item.hash) { $0.table.prefetchSlot(item.hash) } }
        for item in items {
            database.shards.with(item.hash, areLocked: areLocked) { $0.table.prefetchEntry(item.hash) }
        }
        for index in items.indices {
            let item = items[index]
            items[index].copy = database.shards.with(item.hash, areLocked: areLocked) { shard in
                let looked = bytes.withUnsafeBytes { bytes in
                    database.look(shard, Self.key(item, bytes), item.hash, now, .mayBlock, &ticket)
                }
                switch looked {
                case .absent: return .absent
                case .unknown, .unavailable, .unreadable: return .unread
                case .fresh(let record, let entry):
                    guard record.byteCount < recordBytesMax, bytes.count < bytesMax else { return .unread }
                    if counts {
                        database.use(entry, shard, &ticket)
                    } else {
                        database.depend(on: entry, shard, &ticket)
                    }
                    let start = bytes.count
                    bytes.append(contentsOf: record.payload)
                    return .fresh(
                        storedAt: record.header.storedAt, deadline: database.applied.rules.deadline(record.header),
                        payload: start..<bytes.count)
                }
            }
        }
    }
}

extension IndexCandidates {
    /// Replaces the content of a batch by the next candidates, without their entries.
    /// - Parameters:
    ///   - most: the number of candidates.
    ///   - isWanted: whether a candidate with this term is not passed over.
    /// - Returns: false if there are no more candidates.
    package func next(
        _ most: Int, into batch: inout CandidateBatch, where isWanted: (UnsafeRawBufferPointer) -> Bool = { _ in true }
    ) throws(LarderError) -> Bool {
        batch.removeAll()
        var isMore = true
        while batch.count < most, isMore {
            isMore = try read(next: most - batch.count) { hint, termCount in
                guard isWanted(UnsafeRawBufferPointer(rebasing: hint[..<termCount])) else { return }
                batch.add(hint, termCount: termCount)
            }
        }
        return batch.count > 0
    }

    /// Looks up the entries of a batch. Waits until they are committed.
    package func look(up batch: inout CandidateBatch) throws(LarderError) {
        var ticket = CommitTicket.none
        batch.look(in: view.database, counts: true, &ticket)
        let pipeline = view.database.pipeline
        if !view.mayBlock, !pipeline.isDecided(ticket) {
            throw LarderError(.invalidated, "the entries are not committed yet", operation: "query")
        }
        try pipeline.wait(for: ticket)
    }
}
