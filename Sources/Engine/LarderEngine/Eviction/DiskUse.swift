import LarderPlatform

extension DiskBudget {
    /// Measures what a limit is for.
    /// - Parameters:
    ///   - directory: of one database; nil for the larder: then the journal does not count.
    ///   - stores: the open ones below. Of their tables only those count that LevelDB needs: others are being written by
    ///     a merge, or removed behind it.
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
        // After the files: a table that has come meanwhile counts, and one that has gone does not.
        for (path, found) in tables {
            guard let store = paths[path], let sizes = store.tables.measure() else { continue }
            use.bytes += sizes.bytes - found
            use.note(merge: sizes.largestMerge, of: store)
        }
        return use
    }
}

/// What files take that count against a limit. A value.
struct DiskUse {
    /// All but the journal, and but what is on the disk for the time of a merge.
    var bytes: Int
    /// The most bytes that LevelDB could merge at once, and where.
    private(set) var largestMerge = 0
    private(set) var store: EpochStore?

    init(bytes: Int) { self.bytes = bytes }

    mutating func note(merge bytes: Int, of store: EpochStore) {
        guard bytes > largestMerge else { return }
        (largestMerge, self.store) = (bytes, store)
    }

    /// With what must stay free for a merge that is larger than others may be.
    func needed(_ marks: DiskMarks) -> Int { bytes + max(0, largestMerge - marks.mergeBytes) }
}
