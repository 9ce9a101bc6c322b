import LarderPlatform

/// A directory under the system's directory for temporary files. It is removed with its contents when the last
/// reference to this object is released. Keep a reference while the files are needed, and close everything that creates
/// files in it before you release the reference.
///
/// Thread-safe: the path never changes.
package final class TemporaryDirectory: Sendable {
    /// The path, without a slash at the end. Only this user can read and write the directory.
    package let path: String

    /// Creates an empty directory.
    /// - Parameters:
    ///   - parent: the parent directory; nil for `$TMPDIR`, or else `/tmp`.
    ///   - inMemory: uses `/dev/shm` (in memory) instead of `parent` if it has more than 256 MiB of free space.
    ///   - prefix: the prefix of the directory's name. Keep it short: a socket's path has at most about 100 bytes.
    package init(in parent: String? = nil, inMemory: Bool = false, prefix: String = "larder") throws(FileError) {
        var parent = parent ?? getenv("TMPDIR").map { String(cString: $0) } ?? ""
        if inMemory, Self.hasRoomInMemory { parent = "/dev/shm" }
        while parent.hasSuffix("/") { parent.removeLast() }
        if parent.isEmpty { parent = "/tmp" }
        var template = "\(parent)/\(prefix).XXXXXX".utf8CString
        let made = template.withUnsafeMutableBufferPointer { buffer in
            guard let start = buffer.baseAddress, mkdtemp(start) != nil else { return nil as String? }
            return String(cString: start)
        }
        guard let made else { throw FileError(operation: "create a directory in", path: parent, number: errno) }
        path = made
    }

    deinit { remove() }

    private static var hasRoomInMemory: Bool {
        var status = statvfs()
        return access("/dev/shm", W_OK) == 0 && statvfs("/dev/shm", &status) == 0
            && UInt64(status.f_bavail) * UInt64(status.f_frsize) > 256 << 20
    }

    /// Removes the directory and its contents. May be called repeatedly. Removes symbolic links without following them,
    /// and ignores files that cannot be removed.
    package func remove() { Self.removeTree(path) }

    private static func removeTree(_ path: String) {
        for name in (try? FileSystem.list(path)) ?? [] { removeEntry("\(path)/\(name)") }
        rmdir(path)
    }

    private static func removeEntry(_ path: String) {
        var status = stat()
        guard lstat(path, &status) == 0 else { return }
        if status.st_mode & S_IFMT == S_IFDIR {
            // Restore the owner's permissions, without which the contents cannot be removed.
            chmod(path, S_IRWXU)
            removeTree(path)
        } else {
            unlink(path)
        }
    }
}
