import LarderPlatform

/// The lock on `<larder>/LOCK`, which ensures that only one process, the holder, has a larder open. The file contains
/// the holder's process ID and the path of its socket.
///
/// Uses flock(2) instead of fcntl(2). A lock by fcntl is released as soon as the process closes any descriptor of the
/// file.
struct LarderLock: ~Copyable {
    static let fileName = "LOCK"
    private let descriptor: Int32

    init(directory: String, socket: String) throws(LarderError) {
        let path = directory + "/" + Self.fileName
        if FileSystem.existsButIsNotRegularFile(path) {
            throw LarderError(
                .io,
                "\(path) is not a file, so the holder of the larder is unknown. Larder did not create it: move it away "
                    + "when no process uses the larder, and try again", operation: "open larder")
        }
        let refusal = Self.refusal(of: directory)
        let file = FileSystem.openFile(path, O_RDWR | (refusal == nil ? O_CREAT : 0) | O_CLOEXEC, 0o600)
        guard file >= 0 else {
            let number = errno
            throw refusal ?? Self.error("open", path, number, Self.advice(directory, number))
        }
        try Self.lock(file, LOCK_EX, path, directory)
        if let refusal {
            flock(file, LOCK_UN)
            close(file)
            throw refusal
        }
        do throws(FileError) {
            guard ftruncate(file, 0) == 0 else { throw FileError(operation: "truncate", path: path, number: errno) }
            let text = "pid \(getpid())\n" + (socket.isEmpty ? "" : "socket \(socket)\n")
            try FileSystem.writeAll(Array(text.utf8), descriptor: file, path: path)
        } catch {
            // Ignore an error, such as a full disk: the lock is held, and only the text for other processes is missing.
        }
        descriptor = file
    }

    /// Locks a larder that no process has open, so that no process opens it while its files are read. Creates and
    /// changes nothing.
    /// - Returns: nil if there is no LOCK file, because no process has ever opened the larder.
    static func reading(_ directory: String) throws(LarderError) -> LarderLock? {
        let path = directory + "/" + fileName
        let file = FileSystem.openFile(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        guard file >= 0 else {
            if errno == ENOENT { return nil }
            throw error("open", path, errno)
        }
        try lock(file, LOCK_SH, path, directory)
        return LarderLock(descriptor: file)
    }

    /// Locks the file. If that fails, closes it and throws an error that names the holder.
    private static func lock(_ file: Int32, _ kind: Int32, _ path: String, _ directory: String) throws(LarderError) {
        guard flock(file, kind | LOCK_NB) != 0 else { return }
        let number = errno
        let holder = (try? FileSystem.read(descriptor: file, path: path, bytesMax: 4096)) ?? []
        close(file)
        throw number == EWOULDBLOCK ? held(directory, holder) : error("lock", path, number)
    }

    private init(descriptor: Int32) { self.descriptor = descriptor }

    deinit {
        // Unlock explicitly, because closing is not enough: a child process between fork and exec has a copy of the
        // descriptor, which keeps the lock. A forked child must not unlock the file of its parent.
        if !ForkGuard.isForked { flock(descriptor, LOCK_UN) }
        close(descriptor)
    }

    /// Returns the error for a process that runs as root if the larder belongs to another user; otherwise nil. If root
    /// created files in the larder, that user could no longer open it.
    private static func refusal(of directory: String) -> LarderError? {
        var status = stat()
        guard geteuid() == 0, stat(directory, &status) == 0, status.st_uid != 0 else { return nil }
        return LarderError(
            .io,
            "the larder \(directory) belongs to the user with uid \(status.st_uid), and root's files in it would lock that "
                + "user out; nothing was changed. Use it as that user: setpriv --reuid=\(status.st_uid) "
                + "--regid=\(status.st_gid) --clear-groups … (or make it root's: chown -R root)",
            operation: "open larder")
    }

    private static func error(
        _ operation: String, _ path: String, _ number: Int32, _ advice: String = ""
    ) -> LarderError {
        let cause = FileError(operation: operation, path: path, number: number)
        return LarderError(.io, cause.description + advice, operation: "open larder", underlying: cause)
    }

    /// Returns what helps if a larder's directory cannot be written to; empty if unknown.
    private static func advice(_ directory: String, _ number: Int32) -> String {
        var status = stat()
        switch number {
        case EROFS: return ": its file system is read-only; mount it writable, or use another directory"
        case EACCES where stat(directory, &status) == 0:
            return ": the directory belongs to the user with uid \(status.st_uid), and this process has uid "
                + "\(geteuid()); give it this user: chown -R \(geteuid()) \(directory), or use another directory"
        default: return ""
        }
    }

    private static func held(_ directory: String, _ holder: [UInt8]) -> LarderError {
        let (pid, socket) = parse(holder) ?? ("unknown", nil)
        let wayOut =
            socket.map { "use it through its socket \($0) (larderctl, LarderClient, any Redis client)" }
            ?? "it serves no socket; terminate it, or use another directory"
        return LarderError(
            .larderHeld, "the larder \(directory) is in use by process \(pid): \(wayOut)", operation: "open larder")
    }

    /// Returns the process ID and socket of the holder according to the LOCK file, even if the file is not locked. Used
    /// by tools that search for the daemon.
    static func readHolder(directory: String) -> (pid: String, socket: String?)? {
        guard !FileSystem.existsButIsNotRegularFile(directory + "/" + fileName),
            let bytes = (try? FileSystem.read(directory + "/" + fileName)) ?? nil
        else { return nil }
        return parse(bytes)
    }

    private static func parse(_ bytes: [UInt8]) -> (pid: String, socket: String?)? {
        let lines = String(decoding: bytes, as: UTF8.self).split(separator: "\n").map {
            $0.split(separator: " ", maxSplits: 1)
        }
        guard let pid = lines.first(where: { $0.first == "pid" && $0.count == 2 }) else { return nil }
        let socket = lines.first { $0.first == "socket" && $0.count == 2 }
        return (String(pid[1]), socket.map { String($0[1]) })
    }
}
