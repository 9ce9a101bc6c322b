/// A failed call to the operating system.
package struct FileError: Error, Sendable, CustomStringConvertible {
    package let operation: String
    package let path: String
    package let number: Int32

    package init(operation: String, path: String, number: Int32) {
        (self.operation, self.path, self.number) = (operation, path, number)
    }

    /// The error for a file or directory that was removed or replaced while it was in use.
    package static func gone(_ path: String) -> FileError { FileError(operation: "stat", path: path, number: ENOENT) }

    /// Whether the disk or a quota is full.
    package var isFullDisk: Bool { number == ENOSPC || number == EDQUOT }

    package var description: String { "\(operation) \(path): \(SystemErrorText.of(number))" }
}

/// Operations on files, with errors that name the operation and the path.
package enum FileSystem {
    /// Calls open(2), and repeats the call if a signal interrupts it.
    /// - Returns: the descriptor; negative after an error, with `errno` set.
    package static func openFile(_ path: String, _ flags: Int32, _ mode: mode_t = 0) -> Int32 {
        while true {
            let file = open(path, flags, mode)
            if file >= 0 || errno != EINTR { return file }
        }
    }

    package static func exists(_ path: String) -> Bool { access(path, F_OK) == 0 }

    /// Whether the path exists and is not a regular file, but for example a directory, a socket, a pipe or a broken
    /// link. False if that cannot be determined.
    package static func existsButIsNotRegularFile(_ path: String) -> Bool {
        var status = stat()
        if stat(path, &status) == 0 { return status.st_mode & S_IFMT != S_IFREG }
        return errno == ELOOP || (errno == ENOENT && lstat(path, &status) == 0)
    }

    package static func isDirectory(_ path: String) -> Bool {
        var status = stat()
        return stat(path, &status) == 0 && status.st_mode & S_IFMT == S_IFDIR
    }

    /// Whether the mode of a directory lets users other than its owner create and remove files in it.
    package static func isWritableByOthers(_ directory: String) -> Bool {
        var status = stat()
        return stat(directory, &status) == 0 && status.st_mode & 0o022 != 0
    }

    /// Returns the status of the path by lstat(2), which does not follow symbolic links.
    /// - Returns: nil if the path does not exist.
    package static func linkStatus(_ path: String) throws(FileError) -> stat? {
        var status = stat()
        if lstat(path, &status) == 0 { return status }
        if errno == ENOENT || errno == ENOTDIR { return nil }
        throw FileError(operation: "stat", path: path, number: errno)
    }

    /// Creates a directory that only its owner can read, unless it exists.
    package static func makeDirectory(_ path: String, mode: mode_t = 0o700) throws(FileError) {
        if mkdir(path, mode) == 0 || (errno == EEXIST && isDirectory(path)) { return }
        throw FileError(operation: "mkdir", path: path, number: errno)
    }

    /// Creates a directory and its missing parents, and syncs their entries.
    package static func makeDirectories(_ path: String, mode: mode_t = 0o700) throws(FileError) {
        if isDirectory(path) { return }
        if let slash = path.lastIndex(of: "/"), slash != path.startIndex {
            try makeDirectories(String(path[..<slash]), mode: mode)
        }
        try makeDirectory(path, mode: mode)
        // Ignore errors: a parent directory that this process may not read cannot be synced.
        try? syncDirectory(parent(path))
    }

    /// Returns the sorted names of the files in a directory, without `.` and `..`.
    package static func list(_ path: String) throws(FileError) -> [String] {
        guard let directory = opendir(path) else { throw FileError(operation: "list", path: path, number: errno) }
        defer { closedir(directory) }
        var names: [String] = []
        while true {
            errno = 0
            guard let entry = readdir(directory) else {
                if errno != 0 { throw FileError(operation: "list", path: path, number: errno) }
                return names.sorted()
            }
            // `d_name` is a NUL-terminated array inside the entry, valid until the next readdir.
            let name = withUnsafePointer(to: &entry.pointee.d_name) { field in
                field.withMemoryRebound(to: CChar.self, capacity: MemoryLayout.size(ofValue: field.pointee)) {
                    String(cString: $0)
                }
            }
            if name != "." && name != ".." { names.append(name) }
        }
    }

    package static func rename(_ from: String, to: String) throws(FileError) {
        guard systemRename(from, to) == 0 else { throw FileError(operation: "rename", path: from, number: errno) }
    }

    /// Syncs a directory, so that created, renamed and removed files in it stay so after a machine failure.
    package static func syncDirectory(_ path: String) throws(FileError) {
        let file = openFile(path, O_RDONLY | O_CLOEXEC)
        guard file >= 0 else { throw FileError(operation: "open", path: path, number: errno) }
        defer { close(file) }
        guard fsync(file) == 0 else { throw FileError(operation: "fsync", path: path, number: errno) }
    }

    /// Reads a small file. If the file is longer than `bytesMax`, stops within 4 KiB after that many bytes.
    /// - Returns: nil if the file does not exist.
    package static func read(_ path: String, bytesMax: Int = 65_536) throws(FileError) -> [UInt8]? {
        // Use O_NONBLOCK: without it, opening a named pipe would wait for a writer.
        let file = openFile(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        guard file >= 0 else {
            if errno == ENOENT { return nil }
            throw FileError(operation: "open", path: path, number: errno)
        }
        defer { close(file) }
        return try read(descriptor: file, path: path, bytesMax: bytesMax)
    }

    package static func read(descriptor file: Int32, path: String, bytesMax: Int) throws(FileError) -> [UInt8] {
        var bytes: [UInt8] = []
        var chunk = [UInt8](repeating: 0, count: 4096)
        while bytes.count < bytesMax {
            let count = systemRead(file, &chunk, chunk.count)
            if count == 0 { break }
            if count < 0 {
                if errno == EINTR { continue }
                throw FileError(operation: "read", path: path, number: errno)
            }
            bytes.append(contentsOf: chunk.prefix(count))
        }
        return bytes
    }

    package static func writeAll(_ bytes: [UInt8], descriptor file: Int32, path: String) throws(FileError) {
        var done = 0
        while done < bytes.count {
            let count = bytes.withUnsafeBytes { bytes in
                let rest = UnsafeRawBufferPointer(rebasing: bytes.dropFirst(done))
                return write(file, rest.baseAddress, rest.count)
            }
            if count < 0 {
                if errno == EINTR { continue }
                guard errno == EAGAIN else { throw FileError(operation: "write", path: path, number: errno) }
                // The descriptor is non-blocking, such as a terminal that another program has changed.
                var entry = pollfd(fd: file, events: Int16(POLLOUT), revents: 0)
                _ = systemPoll(&entry, 1, -1)
                continue
            }
            guard count > 0 else { throw FileError(operation: "write", path: path, number: ENOSPC) }
            done += count
        }
    }

    /// Replaces a file's content atomically: writes and syncs a new file, renames it, and syncs the directory. After a
    /// crash the file has the old or the new content. If this throws, the old content is still in place.
    /// - Returns: the error if the directory could not be synced, else nil. After such an error the new content is in
    ///   place, but a machine failure may bring the old content back.
    package static func replace(_ path: String, with bytes: [UInt8]) throws(FileError) -> FileError? {
        try Replacement(of: path, with: bytes).putInPlace()
    }

    /// Creates or replaces a file, and reserves disk space for it without writing data (macOS: writes zeros).
    package static func allocate(_ path: String, bytes: Int) throws(FileError) {
        let file = openFile(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard file >= 0 else { throw FileError(operation: "create", path: path, number: errno) }
        defer { close(file) }
        do throws(FileError) {
            try allocate(file, bytes: bytes, path: path)
        } catch {
            unlink(path)
            throw error
        }
    }

    private static func allocate(_ file: Int32, bytes: Int, path: String) throws(FileError) {
        #if canImport(Darwin)
            try writeAll([UInt8](repeating: 0, count: bytes), descriptor: file, path: path)
        #else
            // Fails if there are not enough blocks.
            let status = posix_fallocate(file, 0, off_t(bytes))
            guard status == 0 else {
                throw FileError(operation: "reserve \(bytes) bytes in", path: path, number: status)
            }
        #endif
    }

    /// Tests whether the disk has space for a file of `bytes` bytes: creates it, syncs a part of it, and removes it.
    package static func probe(directory: String, bytes: Int) throws(FileError) {
        let path = directory + "/.probe"
        let file = openFile(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o600)
        guard file >= 0 else { throw FileError(operation: "create", path: path, number: errno) }
        defer {
            close(file)
            unlink(path)
        }
        // Reserves the blocks without writing them.
        try allocate(file, bytes: bytes, path: path)
        #if !canImport(Darwin)
            try writeAll([UInt8](repeating: 0, count: 4096), descriptor: file, path: path)
        #endif
        guard fsync(file) == 0 else { throw FileError(operation: "fsync", path: path, number: errno) }
    }

    /// Creates or replaces a file, and syncs it.
    package static func writeFile(_ path: String, _ bytes: [UInt8]) throws(FileError) {
        let file = openFile(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o600)
        guard file >= 0 else { throw FileError(operation: "create", path: path, number: errno) }
        defer { close(file) }
        try writeAll(bytes, descriptor: file, path: path)
        guard fsync(file) == 0 else { throw FileError(operation: "fsync", path: path, number: errno) }
    }

    /// Appends bytes to an existing file, and syncs it. After an error, the file may contain a part of the bytes.
    package static func appendFile(_ path: String, _ bytes: [UInt8]) throws(FileError) {
        let file = openFile(path, O_WRONLY | O_APPEND | O_CLOEXEC)
        guard file >= 0 else { throw FileError(operation: "open", path: path, number: errno) }
        defer { close(file) }
        try writeAll(bytes, descriptor: file, path: path)
        guard fsync(file) == 0 else { throw FileError(operation: "fsync", path: path, number: errno) }
    }

    /// Creates a hard link: a second name for a file.
    package static func hardLink(_ path: String, to other: String) throws(FileError) {
        guard link(path, other) == 0 else { throw FileError(operation: "link", path: path, number: errno) }
    }

    /// Removes a file if it exists.
    package static func removeFile(_ path: String) throws(FileError) {
        if unlink(path) == 0 || errno == ENOENT { return }
        throw FileError(operation: "unlink", path: path, number: errno)
    }

    /// Truncates a file, and syncs it.
    package static func truncate(_ path: String, to byteCount: Int) throws(FileError) {
        let file = openFile(path, O_WRONLY | O_CLOEXEC)
        guard file >= 0 else { throw FileError(operation: "open", path: path, number: errno) }
        defer { close(file) }
        guard ftruncate(file, off_t(byteCount)) == 0 else {
            throw FileError(operation: "truncate", path: path, number: errno)
        }
        guard fsync(file) == 0 else { throw FileError(operation: "fsync", path: path, number: errno) }
    }

    /// Syncs a file, including data that other processes have written.
    /// - Parameter byteCount: is set to the file's length before the sync: at least this part is on the disk
    ///   afterwards.
    /// - Returns: false if the file does not exist.
    package static func sync(_ path: String, byteCount: inout Int) throws(FileError) -> Bool {
        let file = openFile(path, O_RDONLY | O_CLOEXEC)
        guard file >= 0 else {
            if errno == ENOENT { return false }
            throw FileError(operation: "open", path: path, number: errno)
        }
        defer { close(file) }
        var status = stat()
        guard fstat(file, &status) == 0 else { throw FileError(operation: "stat", path: path, number: errno) }
        byteCount = Int(status.st_size)
        guard fsync(file) == 0 else { throw FileError(operation: "fsync", path: path, number: errno) }
        return true
    }

    /// Returns the total size of LevelDB's log files (`*.log`) in a directory, in bytes. When LevelDB opens the
    /// database, it writes about as many bytes into tables.
    package static func size(ofLogsIn path: String) -> Int {
        let logs = ((try? list(path)) ?? []).filter { $0.hasSuffix(".log") }
        return logs.reduce(0) { $0 + size(path + "/" + $1) }
    }

    /// Returns the free space on a directory's file system for unprivileged users, in bytes; nil if unknown.
    package static func room(directory: String) -> Int? {
        var status = statvfs()
        guard statvfs(directory, &status) == 0 else { return nil }
        return Int(clamping: UInt64(status.f_bavail) &* UInt64(status.f_frsize))
    }

    /// Returns the size of a directory's file system in bytes; nil if unknown.
    package static func totalBytes(of directory: String) -> Int? {
        var status = statvfs()
        guard statvfs(directory, &status) == 0 else { return nil }
        return Int(clamping: UInt64(status.f_blocks) &* UInt64(status.f_frsize))
    }

    /// Returns the disk space of a directory and everything in it, in bytes. A file counts with its allocated blocks,
    /// as in `du`, or with its length if that is larger. A file with several hard links is counted once. Files that are
    /// removed during the call are ignored.
    package static func space(_ path: String) -> Int {
        var seen: Set<FileIdentity> = []
        return space(path, &seen) { _ in }
    }

    /// Like ``space(_:)``, but reports each file and can skip some.
    /// - Parameters:
    ///   - prefix: skips files and directories directly in `path` if their names begin with this.
    ///   - found: called with the path and the disk space of each file, only once for a file with several hard links.
    package static func space(_ path: String, leavingOut prefix: String? = nil, _ found: (String, Int) -> Void) -> Int {
        var seen: Set<FileIdentity> = []
        return space(path, &seen, leavingOut: prefix) { found($0.path, $0.bytes) }
    }

    /// The identity of a file, which does not depend on its path: the device and the inode.
    package struct FileIdentity: Hashable, Sendable {
        let device: UInt64
        let number: UInt64

        package init(_ status: stat) {
            device = UInt64(truncatingIfNeeded: status.st_dev)
            number = UInt64(truncatingIfNeeded: status.st_ino)
        }
    }

    /// Returns the identity of the file at a path, following symbolic links; nil if there is none or stat(2) fails.
    package static func identity(_ path: String) -> FileIdentity? {
        var status = stat()
        return stat(path, &status) == 0 ? FileIdentity(status) : nil
    }

    /// Whether the path now leads to another file than `identity`, or to none. Returns false if that cannot be checked.
    package static func isReplaced(_ path: String, since identity: FileIdentity?) -> Bool {
        var status = stat()
        guard stat(path, &status) != 0 else { return FileIdentity(status) != identity }
        return errno == ENOENT || errno == ENOTDIR
    }

    /// Whether an open file has been removed from all directories, so that its disk space is freed when it is closed.
    package static func isNameless(descriptor: Int32) -> Bool {
        var status = stat()
        return fstat(descriptor, &status) == 0 && status.st_nlink == 0
    }

    private static func space(
        _ path: String, _ seen: inout Set<FileIdentity>, leavingOut prefix: String? = nil,
        _ found: ((path: String, bytes: Int)) -> Void
    ) -> Int {
        var status = stat()
        guard lstat(path, &status) == 0 else { return 0 }
        let own = Int(status.st_blocks) * 512
        guard status.st_mode & S_IFMT == S_IFDIR else {
            if status.st_nlink > 1 {
                guard seen.insert(FileIdentity(status)).inserted else { return 0 }
            }
            let bytes = max(own, Int(status.st_size))
            found((path, bytes))
            return bytes
        }
        var sum = own
        for name in (try? list(path)) ?? [] where prefix.map({ !name.hasPrefix($0) }) ?? true {
            sum += space(path + "/" + name, &seen, found)
        }
        return sum
    }

    /// Truncates a file to zero bytes if it exists, to free its disk space. Ignores errors.
    package static func empty(_ path: String) {
        let file = openFile(path, O_WRONLY | O_TRUNC | O_CLOEXEC)
        if file >= 0 { close(file) }
    }

    package static func parent(_ path: String) -> String {
        guard let slash = path.lastIndex(of: "/") else { return "." }
        return slash == path.startIndex ? "/" : String(path[..<slash])
    }

    /// Makes a path absolute, whether or not it exists. Does not resolve symbolic links, `.` and `..`.
    package static func absolute(_ path: String) -> String {
        guard !path.hasPrefix("/"), let current = getcwd(nil, 0) else { return path }
        defer { free(current) }
        return String(cString: current) + "/" + path
    }

    /// Resolves symbolic links, `.` and `..` in a path. Returns nil if the path does not exist.
    package static func canonical(_ path: String) -> String? {
        guard let resolved = realpath(path, nil) else { return nil }
        defer { free(resolved) }
        return String(cString: resolved)
    }

    /// Returns the total length of all files in a directory and its subdirectories, in bytes. Files that are removed
    /// during the call are ignored.
    package static func size(_ path: String) -> Int {
        var status = stat()
        guard lstat(path, &status) == 0 else { return 0 }
        guard status.st_mode & S_IFMT == S_IFDIR else { return Int(status.st_size) }
        let names = (try? list(path)) ?? []
        return names.reduce(0) { $0 + size(path + "/" + $1) }
    }

    /// Removes a file, or a directory with its contents, if it exists. Symbolic links are removed, not followed.
    package static func removeTree(_ path: String) throws(FileError) {
        var status = stat()
        guard lstat(path, &status) == 0 else {
            if errno == ENOENT { return }
            throw FileError(operation: "stat", path: path, number: errno)
        }
        if status.st_mode & S_IFMT == S_IFDIR {
            for name in try list(path) { try removeTree(path + "/" + name) }
            if rmdir(path) == 0 || errno == ENOENT { return }
            throw FileError(operation: "rmdir", path: path, number: errno)
        }
        if unlink(path) == 0 || errno == ENOENT { return }
        throw FileError(operation: "unlink", path: path, number: errno)
    }
}
