import LarderPlatform

/// A limit of bytes on the disk, of a larder or of one database. A value.
struct EvictionLimit {
    /// The limit that was set.
    let asked: Int
    /// Nil: the whole larder.
    let database: Database?
    /// All that it is for.
    let databases: [Database]
    let disk: DiskBudget

    /// The limit, or what the file system leaves to the larder, as it was last measured.
    var bytes: Int { database == nil ? min(asked, disk.boundBytes ?? asked) : asked }

    var marks: DiskMarks {
        guard database == nil else { return disk.marks(ofDatabaseWith: asked) }
        return disk.marks ?? DiskMarks(limit: asked, checkpointBytes: disk.checkpointBytes, hasJournal: true)
    }

    /// What the marks are for, now.
    func use() -> DiskUse {
        let stores = databases.compactMap { database -> EpochStore? in
            guard let store = database.durableState.store, store.isMade, store.ending == .none else { return nil }
            return store
        }
        return disk.measure(database?.files.directory, stores)
    }

    /// Like ``use()``, in bytes with what must stay free.
    func measure() -> Int { use().needed(marks) }

    /// The error for a checkpoint when nothing is left that could be evicted. It names what takes the room.
    func shortage(incoming: Int, _ context: EngineContext) -> LarderError {
        let isFull = bytes < asked
        let name =
            database.map { "the limit of database '\($0.name)'" }
            ?? (isFull ? "what the file system has for the larder" : "the disk budget")
        let cure =
            isFull
            ? "remove other files"
            : database == nil
                ? "raise it (--max-disk, CONFIG SET max-disk, CacheOptions.diskBytesMax), or remove other files"
                : "raise it (larderctl limit)"
        return LarderError(
            .writesSuspended,
            "\(name), \(bytes) bytes, leaves no room for \(incoming) bytes, and nothing is left to be evicted: "
                + "\(holders(context)); \(cure)",
            operation: "checkpoint", database: database?.name)
    }

    /// The largest parts of what is there.
    private func holders(_ context: EngineContext) -> String {
        let directory = database?.files.directory ?? context.directory
        let parts = ((try? FileSystem.list(directory)) ?? []).map { name in
            (name: name, bytes: FileSystem.space(directory + "/" + name))
        }
        return parts.sorted { $0.bytes > $1.bytes }.prefix(3).map { "\($0.name) takes \($0.bytes)" }
            .joined(separator: ", ")
    }
}
