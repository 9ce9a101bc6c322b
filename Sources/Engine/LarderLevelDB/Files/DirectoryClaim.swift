import LarderPlatform

/// The exclusive right of one handle of this process to use a directory. It is taken before LevelDB is called, and
/// released after LevelDB has closed.
///
/// LevelDB's own lock is not enough within a process (all measured with 1.23):
/// - It is an fcntl lock, which is released when *any* descriptor of LOCK is closed. A second open or destroy opens and
///   closes LOCK before LevelDB detects the first handle. It is refused, but other processes can now take the lock.
/// - It identifies files by their names: through a symbolic link the same database can be opened twice.
/// - `leveldb_repair_db` takes no lock at all.
///
/// The directory's descriptor stays open, so that its inode cannot be reused for another directory.
///
/// Thread-safe. `@unchecked Sendable`: `isHeld` and `lockFile` change under the registry's lock, or while only their
/// creator has the claim.
final class DirectoryClaim: @unchecked Sendable {
    /// The claimed directories. `@unchecked Sendable`: guarded by `lock`.
    private final class Registry: @unchecked Sendable {
        let lock = Lock()
        var claimed: Set<FileSystem.FileIdentity> = []
    }

    private static let registry = Registry()

    private let path: String
    private let identity: FileSystem.FileIdentity
    private let directory: Int32
    private var lockFile: Int32 = -1
    private var isHeld = true

    /// Throws `.notFound` if there is no such directory, and `.ioError` if this process already claims it or the system
    /// reports an error.
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
        let registry = Self.registry
        guard registry.lock.withLock({ registry.claimed.insert(identity).inserted }) else {
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

    /// Releases the directory. Idempotent. LevelDB must have closed its files.
    func release() {
        let registry = Self.registry
        registry.lock.withLock {
            guard isHeld else { return }
            isHeld = false
            if lockFile >= 0 { close(lockFile) }
            close(directory)
            registry.claimed.remove(identity)
        }
    }

    /// Takes LevelDB's lock against other processes, for a LevelDB function that does not take it. Throws `.ioError` if
    /// another process has the lock. It is safe to open LOCK, because the claim excludes other users in this process.
    func lockAgainstOtherProcesses(operation: String) throws(LevelDBError) {
        lockFile = openat(directory, "LOCK", O_RDWR | O_CREAT | O_CLOEXEC, 0o644)
        guard lockFile >= 0 else { throw LevelDBError(systemCall: "open LOCK", operation: operation, path: path) }
        var request = flock()
        request.l_type = Int16(F_WRLCK)
        request.l_whence = Int16(SEEK_SET)
        guard fcntl(lockFile, F_SETLK, &request) == 0 else {
            throw LevelDBError(systemCall: "lock LOCK", operation: operation, path: path)
        }
    }
}
