import LarderPlatform

/// The exclusive right of one ``Database`` object in this process to use a directory. It is acquired before LevelDB is
/// called, and released after LevelDB has closed its files.
///
/// LevelDB's own lock is not enough within a process (tested with LevelDB 1.23):
/// - It is an fcntl lock on the file LOCK, which is released when the process closes *any* descriptor of LOCK. If the
///   process opens or destroys the database a second time, LevelDB rejects that, but opens and closes LOCK in doing so.
///   Other processes can then take the lock.
/// - LevelDB identifies its locks by file names: through a symbolic link the same database can be opened twice.
///
/// The directory stays open, so that the file system cannot reuse its inode number for another directory.
///
/// `isHeld` is guarded by the lock of `claimed`.
final class DirectoryClaim {
    /// The claimed directories of this process.
    private static let claimed = Locked<Set<FileSystem.FileIdentity>>([])

    private let path: String
    private let identity: FileSystem.FileIdentity
    private let directory: Int32
    private var isHeld = true

    /// Claims a directory. Throws `.notFound` if it does not exist, and `.ioError` if this process has already claimed
    /// it or the system reports an error.
    init(path: String, operation: String) throws(LevelDBError) {
        let directory = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard directory >= 0 else { throw LevelDBError(systemCall: "open", operation: operation, path: path) }
        var status = stat()
        guard fstat(directory, &status) == 0 else {
            let error = LevelDBError(systemCall: "fstat", operation: operation, path: path)
            close(directory)
            throw error
        }
        let identity = FileSystem.FileIdentity(status)
        guard Self.claimed.withLock({ $0.insert(identity).inserted }) else {
            close(directory)
            throw LevelDBError(
                code: .ioError, message: "this process has the database open already", operation: operation,
                path: path)
        }
        self.path = path
        self.identity = identity
        self.directory = directory
    }

    deinit { release() }

    /// Whether the path still refers to this directory. If not, the directory was removed, moved or replaced.
    var isInPlace: Bool { !FileSystem.isReplaced(path, since: identity) }

    /// Releases the claim. LevelDB must have closed its files. Idempotent.
    func release() {
        Self.claimed.withLock { claimed in
            guard isHeld else { return }
            isHeld = false
            close(directory)
            claimed.remove(identity)
        }
    }
}
