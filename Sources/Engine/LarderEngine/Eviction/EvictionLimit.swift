import LarderPlatform

/// A disk limit of a larder or of one database, in bytes. A value.
struct EvictionLimit {
    /// The configured limit.
    let asked: Int
    /// The database; nil for the whole larder.
    let database: Database?
    /// All databases under the limit.
    let databases: [Database]
    let disk: DiskBudget

    /// The effective limit. For the whole larder, it is at most the last measured space on the file system.
    var bytes: Int { database == nil ? min(asked, disk.boundBytes ?? asked) : asked }

    var marks: DiskThresholds {
        guard database == nil else { return disk.marks(ofDatabaseWith: asked) }
        return disk.marks ?? DiskThresholds(limit: asked, checkpointBytes: disk.checkpointBytes, hasJournal: true)
    }

    /// Measures the current disk usage.
    func use() -> DiskUse {
        let stores = databases.compactMap { database -> EpochStore? in
            guard let store = database.durableState.store, store.isMade, store.ending == .none else { return nil }
            return store
        }
        return disk.measure(database?.files.directory, stores)
    }

    /// Measures the current usage plus the space that must stay free, in bytes.
    func measure() -> Int { use().needed(marks) }

    /// Returns the error for a checkpoint when nothing more can be evicted. It lists the three largest files or
    /// directories.
    func shortage(incoming: Int, _ context: EngineContext) -> LarderError {
        let isFull = bytes < asked
        let name =
            database.map { "the limit of database '\($0.name)'" }
            ?? (isFull ? "the space on the file system" : "the disk limit")
        let cure =
            isFull
            ? "remove other files"
            : database == nil
                ? "raise it (--max-disk, CONFIG SET max-disk, CacheOptions.diskBytesMax), or remove other files"
                : "raise it (larderctl limit)"
        return LarderError(
            .writesSuspended,
            "\(name), \(bytes) bytes, leaves no space for \(incoming) bytes, and there is nothing left to evict: "
                + "\(holders(context)); \(cure)",
            operation: "checkpoint", database: database?.name)
    }

    /// Describes the largest uses of space.
    private func holders(_ context: EngineContext) -> String {
        let directory = database?.files.directory ?? context.directory
        let parts = ((try? FileSystem.list(directory)) ?? []).map { name in
            (name: name, bytes: FileSystem.space(directory + "/" + name))
        }
        return parts.sorted { $0.bytes > $1.bytes }.prefix(3).map { "\($0.name) takes \($0.bytes)" }
            .joined(separator: ", ")
    }
}

extension DiskBudget {
    /// Measures the disk usage that counts towards a limit.
    /// - Parameters:
    ///   - directory: the directory of one database; nil to measure the whole larder except its journal.
    ///   - stores: the open stores in the directory. Of their tables, only those in LevelDB's manifest are counted. The
    ///     others are the output of a running merge, or LevelDB will remove them after a merge.
    func measure(_ directory: String?, _ stores: [EpochStore]) -> DiskUse {
        let paths = Dictionary(stores.map { ($0.path, $0) }, uniquingKeysWith: { first, _ in first })
        var tables: [String: Int] = [:]
        let all = FileSystem.space(directory ?? self.directory, leavingOut: Self.imagePrefix) { path, bytes in
            guard path.hasSuffix(".ldb") || path.hasSuffix(".sst") else { return }
            tables[FileSystem.parent(path), default: 0] += bytes
        }
        if directory == nil { note(all) }
        var use = DiskUse(bytes: all)
        if directory == nil { use.bytes -= FileSystem.space(self.directory + "/JOURNAL") }
        // Read the manifests after measuring the files, so that tables added in the meantime are counted, and removed
        // tables are not.
        for (path, found) in tables {
            guard let store = paths[path], let sizes = store.tables.measure() else { continue }
            use.bytes += sizes.bytes - found
            use.note(merge: sizes.largestMerge, of: store)
        }
        return use
    }
}

/// The disk usage that counts towards a limit. A value.
struct DiskUse {
    /// The size of all files except the journal and the tables that a running merge writes, in bytes.
    var bytes: Int
    /// The size of the largest merge that LevelDB could run next, and the store in which it would run.
    private(set) var largestMerge = 0
    private(set) var store: EpochStore?

    init(bytes: Int) { self.bytes = bytes }

    mutating func note(merge bytes: Int, of store: EpochStore) {
        guard bytes > largestMerge else { return }
        (largestMerge, self.store) = (bytes, store)
    }

    /// Returns the usage, plus the part of the largest merge that exceeds ``DiskThresholds/mergeBytes``: this space
    /// must stay free.
    func needed(_ marks: DiskThresholds) -> Int { bytes + max(0, largestMerge - marks.mergeBytes) }
}
