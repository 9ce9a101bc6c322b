import LarderPlatform

/// Manipulates files, mostly without the knowledge of the code under test.
package enum Files {
    /// Creates a file, or replaces its contents.
    package static func write(_ path: String, _ bytes: [UInt8]) throws {
        let file = FileSystem.openFile(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o600)
        guard file >= 0 else { throw FileError(operation: "create", path: path, number: errno) }
        defer { close(file) }
        try FileSystem.writeAll(bytes, descriptor: file, path: path)
    }

    package static func read(_ path: String) throws -> [UInt8] {
        guard let bytes = try FileSystem.read(path, bytesMax: 1 << 30) else {
            throw FileError(operation: "open", path: path, number: ENOENT)
        }
        return bytes
    }

    package static func truncate(_ path: String, to size: Int) throws {
        try write(path, Array(try read(path).prefix(size)))
    }

    /// Flips all bits of the byte at `offset`.
    package static func flip(_ path: String, at offset: Int) throws {
        var bytes = try read(path)
        bytes[offset] ^= 0xFF
        try write(path, bytes)
    }

    /// Flips one bit, which a checksum detects.
    package static func flipBit(_ path: String, at offset: Int) throws {
        var bytes = try read(path)
        bytes[offset] ^= 1
        try write(path, bytes)
    }

    /// Removes a file, or a directory and its contents.
    package static func remove(_ path: String) throws { try FileSystem.removeTree(path) }

    /// Copies a directory and its contents.
    package static func copy(_ from: String, to: String) throws {
        try FileSystem.makeDirectories(to)
        for name in try FileSystem.list(from) {
            if FileSystem.isDirectory(from + "/" + name) {
                try copy(from + "/" + name, to: to + "/" + name)
            } else {
                try write(to + "/" + name, try read(from + "/" + name))
            }
        }
    }

    /// Copies a directory whose files LevelDB may change in the background, until none has changed during the copy.
    package static func copyUnchanged(_ from: String, to: String) throws {
        while true {
            let before = try sizes(below: from)
            do {
                try copy(from, to: to)
                if try sizes(below: from) == before { return }
            } catch {
                // Retries if the files changed during the copy.
                guard try sizes(below: from) != before else { throw error }
            }
            try remove(to)
        }
    }

    /// Returns the sizes of all files in a directory and its subdirectories, by path.
    package static func sizes(below path: String) throws -> [String: Int] {
        var sizes: [String: Int] = [:]
        for name in try FileSystem.list(path) {
            let inner = path + "/" + name
            if FileSystem.isDirectory(inner) {
                sizes.merge(try self.sizes(below: inner)) { $1 }
            } else {
                sizes[inner] = FileSystem.size(inner)
            }
        }
        return sizes
    }

    /// Returns the complete state of a directory: for each file or directory in it, the mode, the modification time and
    /// the bytes.
    package static func digest(_ path: String) throws -> [String: String] {
        var status = stat()
        guard lstat(path, &status) == 0 else { throw FileError(operation: "stat", path: path, number: errno) }
        #if canImport(Darwin)
            let changed = status.st_mtimespec
        #else
            let changed = status.st_mtim
        #endif
        var digest: [String: String] = [:]
        var content = ""
        if status.st_mode & S_IFMT == S_IFDIR {
            for name in try FileSystem.list(path) { digest.merge(try self.digest(path + "/" + name)) { $1 } }
        } else if status.st_mode & S_IFMT == S_IFREG {
            var hasher = Hasher()
            hasher.combine(try read(path))
            content = "\(hasher.finalize())"
        }
        digest[path] = "\(status.st_mode) \(status.st_uid) \(changed.tv_sec).\(changed.tv_nsec) \(content)"
        return digest
    }

    /// Returns the names in a directory that have the given suffix.
    package static func names(in path: String, endingWith suffix: String = "") throws -> [String] {
        try FileSystem.list(path).filter { $0.hasSuffix(suffix) }
    }
}

extension TemporaryDirectory {
    /// Creates a file in the directory, or replaces its contents.
    /// - Returns: the path of the file.
    package func makeFile(_ name: String, _ bytes: [UInt8]) throws -> String {
        try Files.write("\(path)/\(name)", bytes)
        return "\(path)/\(name)"
    }
}
