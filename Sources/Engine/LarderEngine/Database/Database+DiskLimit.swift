import LarderPlatform

/// The disk limit of one database.
extension Database {
    /// The limit for the database's files in bytes; 0 if it has no limit of its own.
    package var diskLimit: Int { appliedState.diskLimit }

    /// The disk space of the database's files in bytes, without the journal, which all databases share.
    package var diskBytes: Int { FileSystem.space(files.directory) }

    /// Changes the limit and waits until the change is on the disk. Excess entries are evicted in the background. May
    /// block.
    /// - Parameter bytes: at least ``DiskThresholds/databaseBytesMin``; 0 for no limit of its own.
    /// - Throws: ``LarderError/Code/noSuchDatabase`` if there is no database with this name.
    package func setDiskLimit(_ bytes: Int) throws(LarderError) {
        try ForkGuard.check("limit")
        guard bytes == 0 || bytes >= DiskThresholds.databaseBytesMin else {
            throw LarderError(
                .invalidArgument,
                "the limit is \(bytes) bytes, but must be at least \(DiskThresholds.databaseBytesMin), because LevelDB's own "
                    + "files take space too; or 0 for none", operation: "limit", database: name)
        }
        while true {
            guard !appliedState.isAbsent else {
                throw LarderError(
                    .noSuchDatabase, "there is no database '\(name)'", operation: "limit", database: name)
            }
            if !isReady(forWriting: false) { try prepare(forWriting: false) }
            if try replaceDiskLimit(bytes) { break }
        }
        context.larder.disk.changed()
    }

    /// Throws if a commit unit is too large for the disk limits even after everything else is evicted.
    /// - Parameters:
    ///   - bytes: the size of the unit's keys and records.
    ///   - limit: the limit of the database, ``DatabaseState/diskLimit``.
    func checkFits(_ bytes: Int, limit: Int) throws(LarderError) {
        let most = context.larder.disk.unitBytesMax(databaseLimit: limit)
        guard bytes > most else { return }
        throw LarderError(
            .invalidArgument,
            "a write of \(bytes) bytes is too large: a disk limit of \(2 * most) bytes allows at most half of it per write; "
                + "raise it (--max-disk, CacheOptions.diskBytesMax, larderctl limit)",
            operation: "update", database: name)
    }

    /// Stores the limit in POINTER. Works even while writes are refused, because the limit may be the reason for that.
    /// - Returns: false if the files were removed or closed in the meantime.
    private func replaceDiskLimit(_ bytes: Int) throws(LarderError) -> Bool {
        try life.openLock.withLock { () throws(LarderError) in
            let state = appliedState
            switch state.presence {
            case .absent, .closed: return false
            case .failed(let error), .shut(let error): throw error
            case .deleted: throw deletedError("limit")
            case .open: break
            }
            if state.diskLimit != bytes { try replacePointer("limit") { $0.diskLimit = bytes } }
            return true
        }
    }
}
