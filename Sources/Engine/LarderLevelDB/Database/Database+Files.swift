import CLarderLevelDB

// Functions on the files of a database that is not open.

extension Database {
    /// Deletes LevelDB's files in the directory, and the directory if nothing else is in it. A missing one is no error.
    /// Throws `.ioError` if the database is open, in this process or another.
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

    /// Makes an openable database from the readable files. Entries may be lost, and deleted ones may come back;
    /// unreadable files are moved to `lost/` in the directory. All tables end in level 0, so the first writes are slow.
    ///
    /// Throws `.notFound` if there is nothing to repair, `.ioError` if the database is open, in this process or
    /// another.
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

    /// Inspects the directory by its names and `CURRENT`, and changes nothing.
    ///
    /// A directory that exists but cannot be read counts as `.database`: opening it then reports the system's error,
    /// and it is never taken for free. ``fileState(path:)`` throws instead.
    package static func containsDatabaseFiles(path: String) -> FileState {
        (try? fileState(path: path)) ?? .database
    }

    /// Inspects the directory. Throws `.ioError` if it exists and cannot be read.
    package static func fileState(path: String) throws(LevelDBError) -> FileState {
        try FileState(inspecting: path, operation: "fileState")
    }

    /// Refuses arguments that LevelDB would misunderstand.
    static func check(path: String, options: Options, operation: String) throws(LevelDBError) {
        var complaint = options.complaint()
        // LevelDB would work in the root directory, or in the one named before the NUL.
        if path.isEmpty { complaint = "the path is empty" }
        if path.utf8.contains(0) { complaint = "the path contains a NUL" }
        if let complaint {
            throw LevelDBError(code: .invalidArgument, message: complaint, operation: operation, path: path)
        }
    }
}
