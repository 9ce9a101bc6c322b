import LevelDB

/// What stands where a database's files would be. Somebody may have given a directory of their own as a larder: what is
/// not ours is not listed, not damaged, and never touched.
enum DatabaseDirectory {
    /// Nothing, or an empty directory.
    case absent
    /// A database, intact or damaged: there is a ``PointerFile``, or a directory named as an epoch with LevelDB's files.
    case database
    /// Something else.
    case foreign

    init(_ path: String) {
        guard FileSystem.isDirectory(path) else {
            self = FileSystem.exists(path) ? .foreign : .absent
            return
        }
        // What cannot be listed is not ours to judge.
        guard let names = try? FileSystem.list(path) else {
            self = .foreign
            return
        }
        let isOurs = names.contains { name in
            name == PointerFile.name || (UInt64(name) != nil && Self.isLevelDB(path + "/" + name))
        }
        self = isOurs ? .database : names.isEmpty ? .absent : .foreign
    }

    /// A number alone makes no epoch: people keep directories named as years.
    private static func isLevelDB(_ path: String) -> Bool {
        switch try? LevelDB.Database.fileState(path: path) {
        case .database, .damaged: true
        case .absentOrEmpty, nil: false
        }
    }
}
