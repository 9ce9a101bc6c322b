import Platform

/// A directory of its own for one test, under the system's directory for temporary files. It goes with everything in
/// it when the last reference goes: keep one as long as the files are needed, and close first what makes files in it.
///
/// Thread-safe: the path never changes.
package final class TemporaryDirectory: Sendable {
    /// The system's answer when the directory could not be made.
    package struct Failure: Error, CustomStringConvertible {
        package let description: String
    }

    /// The absolute path, without a slash at the end. Readable and writable by this user alone.
    package let path: String

    /// Makes an empty directory, in `$TMPDIR` or else `/tmp`.
    /// - Parameter inMemory: in a file system that is kept in memory, where there is one with some room: for tests that make many small
    ///   larders, and whose fsyncs would take all their time.
    package init(inMemory: Bool = false) throws {
        var parent = getenv("TMPDIR").map { String(cString: $0) } ?? ""
        if inMemory, Self.hasRoomInMemory { parent = "/dev/shm" }
        while parent.hasSuffix("/") { parent.removeLast() }
        // Short, because a socket's path has room for about a hundred bytes.
        var template = "\(parent.isEmpty ? "/tmp" : parent)/larder.XXXXXX".utf8CString
        let made = template.withUnsafeMutableBufferPointer { buffer in
            guard let start = buffer.baseAddress, mkdtemp(start) != nil else { return nil as String? }
            return String(cString: start)
        }
        guard let made else { throw Failure(description: "mkdtemp: \(String(cString: strerror(errno)))") }
        path = made
    }

    deinit { remove() }

    private static var hasRoomInMemory: Bool {
        var status = statvfs()
        return access("/dev/shm", W_OK) == 0 && statvfs("/dev/shm", &status) == 0
            && UInt64(status.f_bavail) * UInt64(status.f_frsize) > 256 << 20
    }

    /// Makes a file in it, or replaces what it holds.
    /// - Returns: its path.
    package func makeFile(_ name: String, _ bytes: [UInt8]) throws -> String {
        let file = open("\(path)/\(name)", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o600)
        guard file >= 0, write(file, bytes, bytes.count) == bytes.count, close(file) == 0 else {
            throw Failure(description: "\(path)/\(name): \(String(cString: strerror(errno)))")
        }
        return "\(path)/\(name)"
    }

    /// Removes the directory and everything in it. Idempotent. Symbolic links are removed, not followed; what cannot
    /// be removed stays.
    package func remove() { Self.removeTree(path) }

    private static func removeTree(_ path: String) {
        if let names = entries(of: path) {
            for name in names { removeEntry("\(path)/\(name)") }
        }
        rmdir(path)
    }

    private static func removeEntry(_ path: String) {
        var status = stat()
        guard lstat(path, &status) == 0 else { return }
        if status.st_mode & S_IFMT == S_IFDIR {
            // A test may have taken the permission away.
            chmod(path, S_IRWXU)
            removeTree(path)
        } else {
            unlink(path)
        }
    }

    private static func entries(of path: String) -> [String]? {
        guard let directory = opendir(path) else { return nil }
        defer { closedir(directory) }
        var names: [String] = []
        while let entry = readdir(directory) {
            guard let offset = MemoryLayout<dirent>.offset(of: \.d_name) else { continue }
            let name = String(cString: (UnsafeRawPointer(entry) + offset).assumingMemoryBound(to: CChar.self))
            if name != "." && name != ".." { names.append(name) }
        }
        return names
    }
}
