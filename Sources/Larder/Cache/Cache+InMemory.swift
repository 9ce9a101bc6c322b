import LarderEngine
import LarderPlatform

// Larders that leave nothing behind. LevelDB needs files, and its C interface offers no other place for them. So they
// are in a file system in memory, in a directory that is removed with the larder.

extension Cache {
    /// Opens a cache in memory, for tests: a larder of its own that ends with its last handle. It runs through the same
    /// code as a larder on the disk, so a test sees what a program sees.
    ///
    /// ```swift
    /// let cache = try Cache.inMemory(policy: .low)
    /// try cache.set(reader, forKey: "reader")
    /// ```
    /// On Linux its files are below `/dev/shm`, which is memory; elsewhere below `$TMPDIR` or `/tmp`. They are removed
    /// when the last cache, snapshot and enumeration of this larder is closed or released, and at the latest when the
    /// process exits. The next call removes those of a killed process. Open other databases of the same larder with
    /// ``directory``.
    /// - Parameters:
    ///   - name: the database, as for `init(named:directory:options:)`.
    ///   - policy: the database's; nil for ``UpdatePolicy/lowest``, 7 days.
    ///   - options: such as a time that is moved by hand. Without a durability, writes are not synced, which memory does not
    ///     need.
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

/// The directories of this process' larders in memory.
///
/// Thread-safe. The proof for `@unchecked Sendable`: mutable properties are touched only with `lock` held.
final class MemoryDirectories: @unchecked Sendable {
    static let shared = MemoryDirectories()

    private static let prefix = "larder-memory-\(getuid())-"
    /// A file system in memory, if there is one.
    static let place: String = {
        if FileSystem.isDirectory("/dev/shm"), access("/dev/shm", W_OK | X_OK) == 0 { return "/dev/shm" }
        guard let named = getenv("TMPDIR"), named.pointee != 0 else { return "/tmp" }
        return String(cString: named)
    }()

    private let lock = Lock()
    private var made: Set<String> = []
    private var count = 0

    private init() {
        // A program that just ends releases nothing.
        atexit { MemoryDirectories.shared.removeAll() }
    }

    /// A new directory, which nobody else uses.
    func make() throws(LarderError) -> String {
        removeLeftovers()
        while true {
            let number = lock.withLock {
                count += 1
                return count
            }
            let path = "\(Self.place)/\(Self.prefix)\(getpid())-\(number)"
            // A process with the same number has left it behind, and it could not be removed.
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
        // The next process that creates one removes what is left.
        try? FileSystem.removeTree(path)
        lock.withLock { _ = made.remove(path) }
    }

    private func removeAll() {
        let paths = lock.withLock { made }
        for path in paths { remove(path) }
    }

    /// Removes the directories of processes that have ended without doing so.
    private func removeLeftovers() {
        for name in (try? FileSystem.list(Self.place)) ?? [] where name.hasPrefix(Self.prefix) {
            guard let process = name.dropFirst(Self.prefix.count).split(separator: "-").first.flatMap({ pid_t($0) }),
                process > 0, kill(process, 0) == -1, errno == ESRCH, isFree(Self.place + "/" + name)
            else { continue }
            try? FileSystem.removeTree(Self.place + "/" + name)
        }
    }

    /// Whether nobody holds a larder: the process may be in another container, and not visible from here.
    private func isFree(_ path: String) -> Bool {
        let file = open(path + "/LOCK", O_RDONLY | O_CLOEXEC)
        guard file >= 0 else { return errno == ENOENT }
        defer { close(file) }
        return flock(file, LOCK_EX | LOCK_NB) == 0
    }
}
