import LarderLevelDBFormat
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
    /// - Returns: the reason why they are unreadable: the file is missing or too short, or the device reports an error
    ///   and such errors count as damage. Nil if the memory was filled.
    func read(
        _ name: String, at offset: Int, into memory: UnsafeMutableRawBufferPointer
    ) throws(SalvageError) -> String? {
        let file = "\(path)/\(name)"
        // O_NONBLOCK, because opening a pipe would otherwise wait for a writer.
        let descriptor = open(file, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        guard descriptor >= 0 else {
            let number = errno
            if Self.meansMissing(number) { return "the file is missing" }
            throw SalvageError(systemCall: "open", path: file, errno: number)
        }
        defer { close(descriptor) }
        return try read(descriptor, file, at: offset, into: memory)
    }

    private func read(
        _ descriptor: Int32, _ file: String, at offset: Int, into memory: UnsafeMutableRawBufferPointer
    ) throws(SalvageError) -> String? {
        guard offset >= 0, let start = memory.baseAddress else { return nil }
        var done = 0
        while done < memory.count {
            let count = pread(descriptor, start + done, min(memory.count - done, 1 << 30), off_t(offset + done))
            if count > 0 {
                done += count
            } else if count == 0 {
                return "the file ends"
            } else if errno == EINTR {
                continue
            } else if errno == EISDIR || errno == ESPIPE {
                return "it is not a file"
            } else if errno == EIO, readErrorsAreDamage {
                return "input/output error"
            } else {
                throw SalvageError(systemCall: "pread", path: file, errno: errno)
            }
        }
        return nil
    }

    private static func meansMissing(_ number: Int32) -> Bool {
        // A symbolic link to a missing file or to itself counts as missing, because LevelDB does not create links.
        number == ENOENT || number == ENOTDIR || number == ELOOP
    }
}

/// LevelDB's files in a directory, by their numbers. Ignores files with names that LevelDB would write in another form,
/// so two logs or two manifests never have the same number.
struct FoundFiles {
    /// The tables. If a table number has both an `.ldb` and an `.sst` file, the `.ldb` file is used.
    private(set) var tables: [UInt64: String] = [:]
    private(set) var logs: [UInt64: String] = [:]
    private(set) var manifests: [UInt64: String] = [:]
    private(set) var hasCurrent = false

    init(_ names: [String]) {
        for name in names {
            if name == FileNames.current {
                hasCurrent = true
            } else if let number = FileNames.manifestNumber(name), name == FileNames.manifest(number) {
                manifests[number] = name
            } else if let number = FileNames.logNumber(name), name == FileNames.log(number) {
                logs[number] = name
            } else if let number = FileNames.tableNumber(name) {
                let isOld = name == FileNames.oldTable(number) && tables[number] == nil
                if isOld || name == FileNames.table(number) { tables[number] = name }
            }
        }
    }

    func has(_ number: UInt64) -> Bool { tables[number] != nil || logs[number] != nil || manifests[number] != nil }

    /// Whether any file may contain data.
    var mayHoldData: Bool {
        !tables.isEmpty || !logs.isEmpty || manifests.values.contains(where: FileNames.mayHoldData)
    }
}
