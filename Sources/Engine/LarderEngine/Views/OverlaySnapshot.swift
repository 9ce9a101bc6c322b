import LarderPlatform

/// A copy of the dirty entries (those that were only in memory) of a database at one instant, in the order of their
/// keys. A cursor or a snapshot combines them with LevelDB's content of the same instant.
///
/// It has no references to the tables in memory, so readers need no lock.
struct OverlaySnapshot: Sendable {
    private struct Item {
        var offset: Int
        var keyCount: Int32
        /// The length of the record in bytes; 0 if the key was removed.
        var recordCount: Int32
    }

    private var bytes: [UInt8] = []
    private var items: [Item] = []

    /// Copies the dirty entries of a database that have the key prefix `prefix`. The caller must hold all shard locks.
    init(_ database: Database, prefix: [UInt8]) {
        for shard in database.shards.all {
            shard.table.forEachDirty { entry in
                let key = entry.key
                guard key.starts(with: prefix) else { return }
                let offset = bytes.count
                bytes.append(contentsOf: key)
                entry.appendStored(to: &bytes)
                items.append(
                    Item(
                        offset: offset, keyCount: Int32(key.count),
                        recordCount: Int32(bytes.count - offset - key.count)))
            }
        }
    }

    /// Sorts the copies. This is a separate step because the shard locks need not be held for it.
    mutating func sort() {
        bytes.withUnsafeBytes { bytes in
            items.sort { ByteOrder.compare(Self.key($0, bytes), Self.key($1, bytes)) < 0 }
        }
    }

    var count: Int { items.count }

    /// Returns the entries whose keys begin with `prefix`. Does not copy their bytes.
    func narrowed(to prefix: [UInt8]) -> OverlaySnapshot {
        guard !prefix.isEmpty else { return self }
        var narrow = self
        narrow.items = bytes.withUnsafeBytes { bytes in
            items.filter { Self.key($0, bytes).starts(with: prefix) }
        }
        return narrow
    }

    // MARK: Lookup

    private static func key(_ item: Item, _ bytes: UnsafeRawBufferPointer) -> UnsafeRawBufferPointer {
        UnsafeRawBufferPointer(rebasing: bytes[item.offset..<(item.offset + Int(item.keyCount))])
    }

    func key(_ index: Int) -> Key { bytes.withUnsafeBytes { Key(Self.key(items[index], $0)) } }

    /// Passes the record at `index` to `body`, or nil if the key was removed.
    func withRecord<Result>(_ index: Int, _ body: (UnsafeRawBufferPointer?) -> Result) -> Result {
        withEntry(index) { _, record in body(record) }
    }

    /// Passes the key and the record at `index` to `body`; nil for the record if the key was removed.
    func withEntry<Result>(
        _ index: Int, _ body: (_ key: UnsafeRawBufferPointer, _ record: UnsafeRawBufferPointer?) -> Result
    ) -> Result {
        bytes.withUnsafeBytes { bytes in
            let item = items[index]
            let start = item.offset + Int(item.keyCount)
            guard item.recordCount > 0 else { return body(Self.key(item, bytes), nil) }
            return body(
                Self.key(item, bytes),
                UnsafeRawBufferPointer(rebasing: bytes[start..<(start + Int(item.recordCount))]))
        }
    }

    /// Returns the index of the first key that is equal to `key` or follows it; ``count`` if there is none.
    func lowerBound(_ key: UnsafeRawBufferPointer) -> Int {
        bytes.withUnsafeBytes { bytes in
            items.partitioningIndex { ByteOrder.compare(Self.key($0, bytes), key) >= 0 }
        }
    }

    /// Returns the index of the key; nil if the key is not included.
    func find(_ key: Key) -> Int? {
        key.withBytes { wanted in
            let index = lowerBound(wanted)
            return index < items.count && compare(index, wanted) == 0 ? index : nil
        }
    }

    /// Compares the key at `index` with `key`: less than 0 if it comes before `key`, 0 if it is equal.
    func compare(_ index: Int, _ key: UnsafeRawBufferPointer) -> Int {
        bytes.withUnsafeBytes { ByteOrder.compare(Self.key(items[index], $0), key) }
    }
}

/// The content of a database at one instant: a snapshot or cursor of LevelDB, and the entries that were only in memory.
struct DatabaseView<Below: Sendable>: Sendable {
    let store: EpochStore
    /// The snapshot or cursor of LevelDB.
    let below: Below
    let run: OverlaySnapshot
}

extension Database {
    /// The maximum number of entries that are copied with all shards locked. If there are more, they are flushed to
    /// LevelDB first, and copied only if the flush fails.
    static let copiedMax = 4096
    /// The corresponding limit in bytes: 16 MiB.
    static let copiedBytesMax = 16 << 20

    /// Whether so many entries are only in memory that they should be flushed to LevelDB before a view is created.
    var mustFlushToBeRead: Bool { dirtyCount > Self.copiedMax || dirtyByteCount > Self.copiedBytesMax }

    /// Creates a view of the database that includes all changes applied before this call, and waits until they are
    /// committed. May block.
    /// - Parameters:
    ///   - prefix: the prefix of the keys to include.
    ///   - undisturbed: whether checkpoints and sweeps must not write to LevelDB while `look` runs.
    ///   - look: reads LevelDB's part of the view. It must be short, because all shards are locked.
    /// - Returns: nil if the database has no files.
    func view<Below: Sendable>(
        _ operation: String, prefix: [UInt8] = [], undisturbed: Bool = false,
        _ look: (EpochStore) throws(LarderError) -> Below
    ) throws(LarderError) -> DatabaseView<Below>? {
        try ForkGuard.check(operation)
        while true {
            guard let store = try readableStore(appliedState, operation) else { return nil }
            // If the flush fails, more entries are copied than usual.
            if mustFlushToBeRead { _ = try? checkpointer.flush(self) }
            let before = checkpointer.rollbackCount
            func take() throws(LarderError) -> DatabaseView<Below>? {
                try shards.withAllLocked { () throws(LarderError) in
                    guard applied.store === store else { return nil }
                    return DatabaseView(
                        store: store, below: try look(store), run: OverlaySnapshot(self, prefix: prefix))
                }
            }
            let view = undisturbed ? try store.indexLock.withLock(take) : try take()
            pipeline.drain()
            // If the database was opened, closed or rolled back in the meantime, try again.
            guard let view, checkpointer.rollbackCount == before else { continue }
            var run = view.run
            run.sort()
            return DatabaseView(store: view.store, below: view.below, run: run)
        }
    }
}
