import LarderPlatform

/// The system calls of the journal. Calls that fail with EINTR are repeated.
///
/// Thread-safe: only constants.
struct JournalFiles: Sendable {
    let faults: JournalFaults?

    /// Creates an empty file, open for reading and writing. Empties an existing one.
    func create(_ path: String) throws(FileError) -> Int32 {
        var file: Int32 = -1
        try run("create", .create, path) {
            file = FileSystem.openFile(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0o600)
            return file
        }
        return file
    }

    /// Called for each segment before it is read, so that tests can make the read fail.
    func willRead(_ path: String) throws(FileError) {
        if case .fail(let number) = faults?.answer(.open, path) {
            throw FileError(operation: "open", path: path, number: number)
        }
    }

    func rename(_ from: String, to: String) throws(FileError) {
        if case .fail(let number) = faults?.answer(.rename, from) {
            throw FileError(operation: "rename", path: from, number: number)
        }
        try FileSystem.rename(from, to: to)
    }

    /// Writes all bytes at `offset`, with one system call unless that is interrupted or writes only a part.
    func write(_ bytes: UnsafeRawBufferPointer, to file: Int32, at offset: Int, path: String) throws(FileError) {
        var done = 0
        while done < bytes.count {
            let rest = UnsafeRawBufferPointer(rebasing: bytes[done...])
            var count = rest.count
            switch faults?.answer(.write(count), path) {
            case .fail(EINTR): continue
            case .fail(let number): throw FileError(operation: "write", path: path, number: number)
            case .shorten(let shorter): count = min(count, max(1, shorter))
            case nil: break
            }
            let written = pwrite(file, rest.baseAddress, count, off_t(offset + done))
            if written < 0 {
                if errno == EINTR { continue }
                throw FileError(operation: "write", path: path, number: errno)
            }
            guard written > 0 else { throw FileError(operation: "write", path: path, number: ENOSPC) }
            done += written
        }
    }

    /// Writes all bytes at `offset`, by default at the beginning of the file.
    func write(_ bytes: [UInt8], to file: Int32, at offset: Int = 0, path: String) throws(FileError) {
        let failure: FileError? = bytes.withUnsafeBytes { bytes in
            do throws(FileError) {
                try write(bytes, to: file, at: offset, path: path)
                return nil
            } catch {
                return error
            }
        }
        if let failure { throw failure }
    }

    /// Returns when the bytes of a file, and the metadata needed to find them, are on the disk.
    func sync(_ file: Int32, path: String) throws(FileError) {
        try run("fsync", .fsync, path) {
            #if canImport(Darwin)
                // On this system, fsync may leave the bytes in the drive's cache. Some file systems support only fsync.
                let status = fcntl(file, F_FULLFSYNC)
                return status == -1 && (errno == ENOTSUP || errno == EINVAL) ? fsync(file) : status
            #else
                return fdatasync(file)
            #endif
        }
    }

    /// Opens a file, and syncs it like ``sync(_:path:)``.
    /// - Returns: false if there is no such file.
    func sync(fileAt path: String) throws(FileError) -> Bool {
        let file = FileSystem.openFile(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)
        guard file >= 0 else {
            if errno == ENOENT { return false }
            throw FileError(operation: "open", path: path, number: errno)
        }
        defer { close(file) }
        try sync(file, path: path)
        return true
    }

    /// Truncates a file that is not open, and syncs it.
    func truncate(fileAt path: String, to count: Int) throws(FileError) {
        let file = FileSystem.openFile(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)
        guard file >= 0 else { throw FileError(operation: "open", path: path, number: errno) }
        defer { close(file) }
        try truncate(file, to: count, path: path)
        try sync(file, path: path)
    }

    func truncate(_ file: Int32, to count: Int, path: String) throws(FileError) {
        try run("ftruncate", .ftruncate(count), path) { ftruncate(file, off_t(count)) }
    }

    /// Removes a file if it exists.
    func unlink(_ path: String) throws(FileError) {
        do throws(FileError) {
            try run("unlink", .unlink, path) { remove(path) }
        } catch {
            if error.number != ENOENT { throw error }
        }
    }

    func syncDirectory(_ path: String) throws(FileError) {
        if case .fail(let number) = faults?.answer(.fsyncDirectory, path) {
            throw FileError(operation: "fsync", path: path, number: number)
        }
        try FileSystem.syncDirectory(path)
    }

    private func run(_ operation: String, _ call: JournalCall, _ path: String, _ body: () -> Int32) throws(FileError) {
        while true {
            let number: Int32
            if case .fail(let fault) = faults?.answer(call, path) {
                number = fault
            } else {
                if body() >= 0 { return }
                number = errno
            }
            if number != EINTR { throw FileError(operation: operation, path: path, number: number) }
        }
    }
}
