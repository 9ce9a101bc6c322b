import LarderPlatform

/// A restoration in progress. It fills a temporary directory next to the path of the new larder, and finally renames
/// the directory to that path. A lock on the directory prevents a second restoration to the same path.
struct Restoration: ~Copyable {
    /// The path of the temporary directory. It is empty at first, and becomes the larder.
    let unfinished: String
    private let place: String
    private let lock: FileLock

    /// Creates and locks the temporary directory.
    /// - Parameter place: the directory of the new larder; it must be missing or empty.
    /// - Throws: `.place` if the final rename would fail, or another restoration to this path is running.
    init(of place: String) throws(BackupError) {
        self.place = place
        let name = place.split(separator: "/").last.map(String.init) ?? "larder"
        let parent = FileSystem.parent(place)
        unfinished = parent + "/" + BackupDirectory.restoringPrefix + name
        let obstacle: String?
        let lock: FileLock?
        do throws(FileError) {
            obstacle = try Self.obstacle(at: place, name)
            if obstacle == nil { try FileSystem.makeDirectories(parent) }
            lock = obstacle == nil ? try Self.begin(unfinished) : nil
        } catch {
            throw .place("\(error)")
        }
        if let obstacle { throw .place(obstacle) }
        guard let lock else { throw .place("another backup is being restored to \(place)") }
        self.lock = lock
    }

    /// Creates and locks the temporary directory, and removes the files of an earlier, interrupted attempt from it.
    /// - Returns: nil if another restoration is using it.
    private static func begin(_ unfinished: String) throws(FileError) -> FileLock? {
        if let status = try FileSystem.linkStatus(unfinished), status.st_mode & S_IFMT != S_IFDIR {
            try FileSystem.removeTree(unfinished)
        }
        try FileSystem.makeDirectory(unfinished)
        guard let lock = try FileLock.directory(unfinished) else { return nil }
        for name in try FileSystem.list(unfinished) { try FileSystem.removeTree(unfinished + "/" + name) }
        return lock
    }

    /// Returns why a directory cannot be renamed to `place`; nil if it can.
    private static func obstacle(at place: String, _ name: String) throws(FileError) -> String? {
        if name == "." || name == ".." {
            return "a larder cannot be restored to '\(name)': the path must end with the name of the new directory"
        }
        guard let status = try FileSystem.linkStatus(place) else { return nil }
        switch status.st_mode & S_IFMT {
        case S_IFDIR: break
        case S_IFLNK: return "\(place) is a symbolic link; specify the directory itself"
        default: return "\(place) exists and is not a directory; a backup is restored to a new directory"
        }
        guard try FileSystem.list(place).isEmpty else {
            return
                "\(place) exists and is not empty; a backup is restored to a new directory. To replace a larder, stop its "
                + "daemon, move the directory away, and then restore"
        }
        var parent = stat()
        guard stat(FileSystem.parent(place), &parent) == 0, parent.st_dev != status.st_dev else { return nil }
        return "\(place) is a mount point; a backup is restored to a new directory, such as \(place)/larder"
    }

    /// Renames the temporary directory to the larder's path.
    func finish() throws(FileError) {
        // rename(2) replaces an empty directory of that name.
        try FileSystem.rename(unfinished, to: place)
        try FileSystem.syncDirectory(FileSystem.parent(place))
    }

    func undo() { try? FileSystem.removeTree(unfinished) }
}
