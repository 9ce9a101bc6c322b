import LarderPlatform

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
