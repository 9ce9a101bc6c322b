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

    /// Repairs a damaged database so that it can be opened, with LevelDB's own repair function. Entries may be lost,
    /// and deleted entries may return. Moves unreadable files to `lost/` in the directory. Puts all tables into level
    /// 0, so the first writes are slow.
    ///
    /// Throws `.notFound` if there is nothing to repair, and `.ioError` if this process or another has the database
    /// open.
    package static func repair(path: String, options: Options = Options()) throws(LevelDBError) {
        try check(path: path, options: options, operation: "repair")
        let claim = try DirectoryClaim(path: path, operation: "repair")
        defer { claim.release() }
        // LevelDB's repair would create an empty database if there is none.
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

    /// Determines whether the directory contains a database, from the names of its files and the content of `CURRENT`.
    /// Changes nothing.
    ///
    /// If the directory exists but cannot be read, returns `.database`, so that callers do not overwrite it. Opening
    /// the database then throws the system's error. ``fileState(path:)`` itself throws in this case.
    package static func containsDatabaseFiles(path: String) -> FileState {
        (try? fileState(path: path)) ?? .database
    }

    /// Like ``containsDatabaseFiles(path:)``, but throws `.ioError` if the directory exists but cannot be read.
    package static func fileState(path: String) throws(LevelDBError) -> FileState {
        try FileState(inspecting: path, operation: "fileState")
    }

    /// Throws `.invalidArgument` for options out of range, and for paths that LevelDB would misunderstand.
    static func check(path: String, options: Options, operation: String) throws(LevelDBError) {
        var complaint = options.complaint()
        // If the path is empty, LevelDB would use the root directory. If it contains a NUL byte, LevelDB would use only
        // the part before it.
        if path.isEmpty { complaint = "the path is empty" }
        if path.utf8.contains(0) { complaint = "the path contains a NUL" }
        if let complaint {
            throw LevelDBError(code: .invalidArgument, message: complaint, operation: operation, path: path)
        }
    }
}
