import LarderPlatform

// This code must never open the file LOCK. LevelDB's lock is an fcntl lock, so closing any descriptor of LOCK would
// release the lock of a database that this process has open.

/// Whether a directory contains a database, according to its file names and `CURRENT`.
package enum FileState: Hashable, Sendable {
    /// The directory does not exist, or it has no LevelDB files with data: a database may be created here. Files of
    /// other programs, `LOCK`, `LOG`, and the remains of an interrupted creation may exist.
    case absentOrEmpty
    /// `CURRENT` names a manifest that exists.
    case database
    /// There are files with data, but `CURRENT` is missing, empty or truncated, or names a manifest that does not
    /// exist.
    case damaged

    /// Determines the state from the file names in the directory and the content of `CURRENT`. Throws `.ioError` if the
    /// directory or `CURRENT` exists but cannot be read.
    init(inspecting path: String, operation: String) throws(LevelDBError) {
        guard let names = try Self.fileNames(path, operation) else {
            self = .absentOrEmpty
            return
        }
        guard names.contains(FileNames.current) else {
            self = names.contains(where: Self.mayHoldData) ? .damaged : .absentOrEmpty
            return
        }
        guard let manifest = try Self.currentManifest(path, operation), names.contains(manifest) else {
            self = .damaged
            return
        }
        self = .database
    }

    /// Whether a file may contain data: a table, a log, or a manifest other than the first. The first manifest has no
    /// data, because LevelDB writes it before `CURRENT` when it creates a database. A database that was ever open also
    /// has a log or a later manifest.
    private static func mayHoldData(_ name: String) -> Bool {
        (FileNames.tableNumber(name) ?? FileNames.logNumber(name)) != nil
            || name != "MANIFEST-000001" && FileNames.manifestNumber(name) != nil
    }

    /// Returns the file names in the directory; nil if the directory does not exist.
    static func fileNames(_ path: String, _ operation: String) throws(LevelDBError) -> Set<String>? {
        do throws(FileError) { return Set(try FileSystem.list(path)) } catch {
            if error.number == ENOENT { return nil }
            errno = error.number
            throw LevelDBError(systemCall: "opendir", operation: operation, path: path)
        }
    }

    /// Returns the name of the manifest in `CURRENT`; nil if the file is not exactly such a name and a newline.
    static func currentManifest(_ path: String, _ operation: String) throws(LevelDBError) -> String? {
        let file = open("\(path)/CURRENT", O_RDONLY | O_CLOEXEC)
        guard file >= 0 else {
            if errno == ENOENT { return nil }
            throw LevelDBError(systemCall: "open CURRENT", operation: operation, path: path)
        }
        defer { close(file) }
        // 64 bytes are more than the name of any manifest has.
        var bytes = [UInt8](repeating: 0, count: 64)
        var count = 0
        while count < bytes.count {
            let got = bytes.withUnsafeMutableBytes { read(file, $0.baseAddress.map { $0 + count }, $0.count - count) }
            if got == 0 { break }
            if got < 0 {
                if errno == EINTR { continue }
                throw LevelDBError(systemCall: "read CURRENT", operation: operation, path: path)
            }
            count += got
        }
        guard count > 0, bytes[count - 1] == UInt8(ascii: "\n") else { return nil }
        let name = String(decoding: bytes[..<(count - 1)], as: UTF8.self)
        return FileNames.manifestNumber(name) == nil ? nil : name
    }
}

/// Parses the names of LevelDB's files.
package enum FileNames {
    package static let current = "CURRENT"

    /// Returns the number of a log, `NNNNNN.log`; nil for any other name.
    package static func logNumber(_ name: String) -> UInt64? {
        guard name.hasSuffix(".log") else { return nil }
        return number(name.dropLast(4))
    }

    /// Returns the number of a manifest, `MANIFEST-NNNNNN`; nil for any other name.
    package static func manifestNumber(_ name: String) -> UInt64? {
        guard name.hasPrefix("MANIFEST-") else { return nil }
        return number(name.dropFirst(9))
    }

    /// Returns the number of a table, `NNNNNN.ldb` or, from old versions of LevelDB, `NNNNNN.sst`; nil for any other
    /// name.
    package static func tableNumber(_ name: String) -> UInt64? {
        guard name.hasSuffix(".ldb") || name.hasSuffix(".sst") else { return nil }
        return number(name.dropLast(4))
    }

    private static func number(_ text: Substring) -> UInt64? {
        guard !text.isEmpty, text.utf8.allSatisfy({ UInt8(ascii: "0")...UInt8(ascii: "9") ~= $0 }) else { return nil }
        return UInt64(text)
    }
}
