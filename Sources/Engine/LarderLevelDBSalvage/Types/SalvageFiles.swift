import LarderPlatform

/// Reads the files of a LevelDB directory. Each read opens and closes the file, so the limit of open files does not
/// limit the number of tables. Never opens LOCK, because closing it would release the lock of a database that this
/// process has open.
struct SalvageFiles {
    let path: String
    let readErrorsAreDamage: Bool

    /// The result of looking a file up.
    enum Look {
        case file(bytes: Int)
        case missing
        /// A directory, a socket, or another kind of object that LevelDB never creates.
        case noFile
    }

    /// The result of a read.
    enum Outcome {
        case complete
        /// The file is missing or too short, or the device reports an error and such errors count as damage.
        case unreadable(String)
    }

    /// Returns all names in the directory except `.` and `..`.
    func names() throws(SalvageError) -> [String] {
        do throws(FileError) { return try FileSystem.list(path) } catch {
            throw SalvageError(systemCall: "opendir", path: path, errno: error.number)
        }
    }

    func look(at name: String) throws(SalvageError) -> Look {
        var status = stat()
        guard stat("\(path)/\(name)", &status) == 0 else {
            let number = errno
            if Self.meansMissing(number) { return .missing }
            throw SalvageError(systemCall: "stat", path: "\(path)/\(name)", errno: number)
        }
        return status.st_mode & S_IFMT == S_IFREG ? .file(bytes: Int(status.st_size)) : .noFile
    }

    /// Fills the memory with the bytes starting at `offset`.
    func read(_ name: String, at offset: Int, into memory: UnsafeMutableRawBufferPointer) throws(SalvageError)
        -> Outcome
    {
        let file = "\(path)/\(name)"
        // O_NONBLOCK, because opening a pipe would otherwise wait for a writer.
        let descriptor = open(file, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        guard descriptor >= 0 else {
            let number = errno
            if Self.meansMissing(number) { return .unreadable("the file is missing") }
            throw SalvageError(systemCall: "open", path: file, errno: number)
        }
        defer { close(descriptor) }
        return try read(descriptor, file, at: offset, into: memory)
    }

    private func read(
        _ descriptor: Int32, _ file: String, at offset: Int, into memory: UnsafeMutableRawBufferPointer
    ) throws(SalvageError) -> Outcome {
        guard offset >= 0, let start = memory.baseAddress else { return .complete }
        var done = 0
        while done < memory.count {
            let count = pread(descriptor, start + done, min(memory.count - done, 1 << 30), off_t(offset + done))
            if count > 0 {
                done += count
            } else if count == 0 {
                return .unreadable("the file ends")
            } else if errno == EINTR {
                continue
            } else if errno == EISDIR || errno == ESPIPE {
                return .unreadable("it is not a file")
            } else if errno == EIO, readErrorsAreDamage {
                return .unreadable("input/output error")
            } else {
                throw SalvageError(systemCall: "pread", path: file, errno: errno)
            }
        }
        return .complete
    }

    private static func meansMissing(_ number: Int32) -> Bool {
        // A symbolic link to a missing file or to itself counts as missing, because LevelDB does not create links.
        number == ENOENT || number == ENOTDIR || number == ELOOP
    }
}

/// The names of LevelDB's files by their numbers. Ignores other files.
struct FileNames {
    /// The tables. If a table number has both an `.ldb` and an `.sst` file, the `.ldb` file is used.
    private(set) var tables: [UInt64: String] = [:]
    private(set) var logs: [UInt64: String] = [:]
    private(set) var manifests: [UInt64: String] = [:]
    private(set) var hasCurrent = false

    init(_ names: [String]) {
        for name in names {
            if name == "CURRENT" {
                hasCurrent = true
            } else if let number = Self.number(name, prefix: "MANIFEST-", suffix: "") {
                manifests[number] = name
            } else if let number = Self.number(name, prefix: "", suffix: ".log") {
                logs[number] = name
            } else if let number = Self.number(name, prefix: "", suffix: ".ldb") {
                tables[number] = name
            } else if let number = Self.number(name, prefix: "", suffix: ".sst"), tables[number] == nil {
                tables[number] = name
            }
        }
    }

    /// Returns the number between prefix and suffix; nil if LevelDB would write the number in another form. So two
    /// names never have the same number.
    static func number(_ name: String, prefix: String, suffix: String) -> UInt64? {
        guard name.hasPrefix(prefix), name.hasSuffix(suffix), name.utf8.count > prefix.utf8.count + suffix.utf8.count
        else { return nil }
        let digits = name.dropFirst(prefix.count).dropLast(suffix.count)
        guard digits.utf8.allSatisfy({ UInt8(ascii: "0")...UInt8(ascii: "9") ~= $0 }), let number = UInt64(digits),
            padded(number) == digits
        else { return nil }
        return number
    }

    static func padded(_ number: UInt64) -> String {
        let digits = String(number)
        return String(repeating: "0", count: max(0, 6 - digits.count)) + digits
    }
}
