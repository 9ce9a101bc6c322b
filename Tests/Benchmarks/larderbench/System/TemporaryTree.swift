import LarderPlatform

/// A directory for databases and sockets, removed at the end.
final class TemporaryTree {
    let path: String

    /// Creates a directory with a short name below `parent`, because a socket's path is limited to about a hundred
    /// bytes.
    init(in parent: String) throws(BenchError) {
        var template = (parent + "/larderbench.XXXXXX").utf8CString
        let made = template.withUnsafeMutableBufferPointer { buffer in
            buffer.baseAddress.flatMap { mkdtemp($0) }.map { String(cString: $0) }
        }
        guard let made else { throw .system("mkdtemp in \(parent)") }
        path = made
    }

    deinit { Self.remove(path) }

    /// Creates an empty directory in this one.
    func makeDirectory(_ name: String) throws(BenchError) -> String {
        let directory = path + "/" + name
        Self.remove(directory)
        guard mkdir(directory, 0o700) == 0 else { throw .system("mkdir \(directory)") }
        return directory
    }

    static func remove(_ path: String) { try? FileSystem.removeTree(path) }

    /// The disk space of the files below a directory, in bytes.
    static func diskBytes(_ path: String) -> Int {
        names(in: path).reduce(0) { sum, name in
            var status = stat()
            guard lstat(path + "/" + name, &status) == 0 else { return sum }
            if status.st_mode & S_IFMT == S_IFDIR { return sum + diskBytes(path + "/" + name) }
            return sum + Int(status.st_blocks) * 512
        }
    }

    /// The names in a directory.
    static func names(in path: String) -> [String] { (try? FileSystem.list(path)) ?? [] }
}
