import CLarderLevelDB

// Functions on the files of a database that is not open.

extension Database {
    /// Deletes LevelDB's files in the directory, and the directory if nothing else is in it. A missing directory is not
    /// an error. Throws `.ioError` if this process or another has the database open.
    package static func destroy(path: String) throws(LevelDBError) {
        let options = Options()
        try check(path: path, options: options, operation: "destroy")
        let claim: DirectoryClaim
        do {
            claim = try DirectoryClaim(path: path, operation: "destroy")
        } catch  where error.code == .notFound {
            return
        }
        defer { claim.release() }
        let optionsHandle = OptionsHandle(options)
        try withExtendedLifetime(optionsHandle) { () throws(LevelDBError) in
            try checked("destroy", path: path) { leveldb_destroy_db(optionsHandle.handle, path, $0) }
        }
    }

    /// Creates a database that can be opened from the readable files. Entries may be lost, and deleted entries may
    /// return. Unreadable files are moved to `lost/` in the directory. All tables are put into level 0, so the first
    /// writes are slow.
    ///
    /// Throws `.notFound` if there is nothing to repair, and `.ioError` if this process or another has the database
    /// open.
    package static func repair(path: String, options: Options = Options()) throws(LevelDBError) {
        try check(path: path, options: options, operation: "repair")
        let claim = try DirectoryClaim(path: path, operation: "repair")
        defer { claim.release() }
        // LevelDB would create an empty database.
        if try FileState(inspecting: path, operation: "repair") == .absentOrEmpty {
            throw LevelDBError(
                code: .notFound, message: "there is nothing to repair", operation: "repair", path: path)
        }
        try claim.lockAgainstOtherProcesses(operation: "repair")
        let optionsHandle = OptionsHandle(options)
        try withExtendedLifetime(optionsHandle) { () throws(LevelDBError) in
            try checked("repair", path: path) { leveldb_repair_db(optionsHandle.handle, path, $0) }
        }
    }

    /// Inspects the names of the files in the directory and `CURRENT`. Changes nothing.
    ///
    /// A directory that exists but cannot be read is reported as `.database`. It is then not overwritten, and opening
    /// it reports the system's error. ``fileState(path:)`` throws instead.
    package static func containsDatabaseFiles(path: String) -> FileState {
        (try? fileState(path: path)) ?? .database
    }

    /// Inspects the directory. Throws `.ioError` if the directory exists but cannot be read.
    package static func fileState(path: String) throws(LevelDBError) -> FileState {
        try FileState(inspecting: path, operation: "fileState")
    }

    /// Refuses arguments that LevelDB would misunderstand.
    static func check(path: String, options: Options, operation: String) throws(LevelDBError) {
        var complaint = options.complaint()
        // LevelDB would use the root directory for an empty path, and the path before a NUL.
        if path.isEmpty { complaint = "the path is empty" }
        if path.utf8.contains(0) { complaint = "the path contains a NUL" }
        if let complaint {
            throw LevelDBError(code: .invalidArgument, message: complaint, operation: operation, path: path)
        }
    }
}
