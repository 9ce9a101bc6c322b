import LarderEngine
import LarderPlatform

// Larders in memory. LevelDB's C interface can store data only in files. The files of these larders are in a directory
// of a file system in memory. The directory is removed with its larder.

extension Cache {
    /// Opens a cache in memory, for tests: a separate larder, which is removed when its last handle is closed. It runs
    /// the same code as a larder on disk.
    ///
    /// ```swift
    /// let cache = try Cache.inMemory(policy: .low)
    /// try cache.set(reader, forKey: "reader")
    /// ```
    /// On Linux the files are below `/dev/shm`, which is memory; elsewhere below `$TMPDIR` or `/tmp`. They are removed
    /// when all caches, snapshots and enumerations of this larder are closed or released, or when the process exits.
    /// The next call removes files of a killed process. Use ``directory`` to open other databases of the same larder.
    /// - Parameters:
    ///   - name: the name of the database, as for `init(named:directory:options:)`.
    ///   - policy: the policy of the database; nil for ``UpdatePolicy/lowest``, 7 days.
    ///   - options: for example a time source that a test controls. If no durability is set, writes are not synced,
    ///     because memory needs no sync.
    public static func inMemory(
        named name: String = Cache.standardName, policy: UpdatePolicy? = nil, options: CacheOptions = CacheOptions()
    ) throws(LarderError) -> Cache {
        var options = options
        options.durability = options.durability ?? .os
        let directory = try MemoryDirectories.shared.make()
        do throws(LarderError) {
            let change = try policy.map { (policy) throws(LarderError) in
                try PolicyChange(policy, nil, nil, "open", name)
            }
            let opened = try open(name, change, directory, options) { MemoryDirectories.shared.remove(directory) }
            return Cache(opened)
        } catch {
            MemoryDirectories.shared.remove(directory)
            throw error
        }
    }

    /// Runs ``inMemory(named:policy:options:)`` without blocking the calling thread.
    public static func inMemory(
        named name: String = Cache.standardName, policy: UpdatePolicy? = nil, options: CacheOptions = CacheOptions()
    ) async throws(LarderError) -> Cache {
        try await BlockingWork.run { () throws(LarderError) in
            try inMemory(named: name, policy: policy, options: options)
        }
    }
}

/// Creates and removes the directories of this process's larders in memory.
///
/// Thread-safe.
final class MemoryDirectories: Sendable {
    static let shared = MemoryDirectories()

    private static let prefix = "larder-memory-\(getuid())-"
    /// The parent of these directories: `/dev/shm` if it is writable, else `$TMPDIR` or `/tmp`.
    static let place: String = {
        if FileSystem.isDirectory("/dev/shm"), access("/dev/shm", W_OK | X_OK) == 0 { return "/dev/shm" }
        guard let named = getenv("TMPDIR"), named.pointee != 0 else { return "/tmp" }
        return String(cString: named)
    }()

    /// The directories that exist, and the number of all directories so far.
    private let made = Locked<(paths: Set<String>, count: Int)>(([], 0))

    private init() {
        // Remove the directories at exit, because exiting does not release the larders.
        atexit { MemoryDirectories.shared.removeAll() }
    }

    /// Creates a new directory that no other caller uses, and returns its path.
    func make() throws(LarderError) -> String {
        removeLeftovers()
        while true {
            let number = made.withLock { made in
                made.count += 1
                return made.count
            }
            let path = "\(Self.place)/\(Self.prefix)\(getpid())-\(number)"
            // Skip a directory that an earlier process with the same process ID has left behind and that could not be
            // removed.
            if FileSystem.exists(path) { continue }
            do throws(FileError) {
                try FileSystem.makeDirectory(path)
            } catch {
                throw LarderError(.io, error.description, operation: "open", underlying: error)
            }
            made.withLock { _ = $0.paths.insert(path) }
            return path
        }
    }

    func remove(_ path: String) {
        // If this fails, the next process that creates a larder in memory removes the rest.
        try? FileSystem.removeTree(path)
        made.withLock { _ = $0.paths.remove(path) }
    }

    private func removeAll() {
        for path in made.withLock({ $0.paths }) { remove(path) }
    }

    /// Removes directories left behind by processes that have exited.
    private func removeLeftovers() {
        for name in (try? FileSystem.list(Self.place)) ?? [] where name.hasPrefix(Self.prefix) {
            guard let process = name.dropFirst(Self.prefix.count).split(separator: "-").first.flatMap({ pid_t($0) }),
                process > 0, kill(process, 0) == -1, errno == ESRCH, isFree(Self.place + "/" + name)
            else { continue }
            try? FileSystem.removeTree(Self.place + "/" + name)
        }
    }

    /// Whether no process has the larder at `path` open. Checks the lock on its file `LOCK`, because a process in
    /// another container cannot be found by its process ID.
    private func isFree(_ path: String) -> Bool {
        let file = open(path + "/LOCK", O_RDONLY | O_CLOEXEC)
        guard file >= 0 else { return errno == ENOENT }
        defer { close(file) }
        return flock(file, LOCK_EX | LOCK_NB) == 0
    }
}
