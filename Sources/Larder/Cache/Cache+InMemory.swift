import LarderEngine
import LarderPlatform

// Larders without persistent files. LevelDB needs files, and its C interface has no other storage, so they are in a
// file system in memory, in a directory that is removed with the larder.

extension Cache {
    /// Opens a cache in memory, for tests: a separate larder that ends with its last handle. It runs the same code as a
    /// larder on disk.
    ///
    /// ```swift
    /// let cache = try Cache.inMemory(policy: .low)
    /// try cache.set(reader, forKey: "reader")
    /// ```
    /// On Linux its files are below `/dev/shm`, which is memory; elsewhere below `$TMPDIR` or `/tmp`. They are removed
    /// when the last cache, snapshot and enumeration of this larder is closed or released, at the latest when the
    /// process exits. Files of a killed process are removed by the next call. Use ``directory`` to open other databases
    /// of the same larder.
    /// - Parameters:
    ///   - name: the database, as for `init(named:directory:options:)`.
    ///   - policy: the policy of the database; nil for ``UpdatePolicy/lowest``, 7 days.
    ///   - options: for example a time source that a test controls. Without a durability, writes are not synced, which
    ///     memory does not need.
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
            let opened = try Opened(name, change, directory, options) { MemoryDirectories.shared.remove(directory) }
            return Cache(opened)
        } catch {
            MemoryDirectories.shared.remove(directory)
            throw error
        }
    }

    /// ``inMemory(named:policy:options:)``, without blocking the caller.
    public static func inMemory(
        named name: String = Cache.standardName, policy: UpdatePolicy? = nil, options: CacheOptions = CacheOptions()
    ) async throws(LarderError) -> Cache {
        try await BlockingWork.run { () throws(LarderError) in
            try inMemory(named: name, policy: policy, options: options)
        }
    }
}

/// The directories of this process's larders in memory.
///
/// Thread-safe. `@unchecked Sendable`: mutable properties are guarded by `lock`.
final class MemoryDirectories: @unchecked Sendable {
    static let shared = MemoryDirectories()

    private static let prefix = "larder-memory-\(getuid())-"
    /// The directory of a file system in memory, if there is one.
    static let place: String = {
        if FileSystem.isDirectory("/dev/shm"), access("/dev/shm", W_OK | X_OK) == 0 { return "/dev/shm" }
        guard let named = getenv("TMPDIR"), named.pointee != 0 else { return "/tmp" }
        return String(cString: named)
    }()

    private let lock = Lock()
    private var made: Set<String> = []
    private var count = 0

    private init() {
        // Remove the directories at exit, because exiting does not release the larders.
        atexit { MemoryDirectories.shared.removeAll() }
    }

    /// Creates a new directory for this caller alone.
    func make() throws(LarderError) -> String {
        removeLeftovers()
        while true {
            let number = lock.withLock {
                count += 1
                return count
            }
            let path = "\(Self.place)/\(Self.prefix)\(getpid())-\(number)"
            // An earlier process with the same process ID left the directory behind, and it could not be removed.
            if FileSystem.exists(path) { continue }
            do throws(FileError) {
                try FileSystem.makeDirectory(path)
            } catch {
                throw LarderError(.io, error.description, operation: "open", underlying: error)
            }
            lock.withLock { _ = made.insert(path) }
            return path
        }
    }

    func remove(_ path: String) {
        // If this fails, the next process that creates a larder in memory removes the rest.
        try? FileSystem.removeTree(path)
        lock.withLock { _ = made.remove(path) }
    }

    private func removeAll() {
        let paths = lock.withLock { made }
        for path in paths { remove(path) }
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

    /// Whether no process holds the larder at `path`. Checks its lock and not the process ID, because the process may
    /// be in another container.
    private func isFree(_ path: String) -> Bool {
        let file = open(path + "/LOCK", O_RDONLY | O_CLOEXEC)
        guard file >= 0 else { return errno == ENOENT }
        defer { close(file) }
        return flock(file, LOCK_EX | LOCK_NB) == 0
    }
}
