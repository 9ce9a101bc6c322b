import Platform

/// A limit of bytes on the disk, of a larder or of one database. A value.
struct EvictionLimit {
    let bytes: Int
    /// Nil: the whole larder.
    let database: Database?
    let marks: DiskMarks

    /// What the marks are for, now.
    func measure(_ disk: DiskBudget) -> Int { database?.diskBytes ?? disk.measureWithoutJournal() }

    /// The error for a checkpoint when nothing is left that could be evicted. It names what takes the room.
    func shortage(incoming: Int, _ context: EngineContext) -> LarderError {
        let name = database.map { "the limit of database '\($0.name)'" } ?? "the disk budget"
        let cure =
            database == nil
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
