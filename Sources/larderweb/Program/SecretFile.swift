import Platform

/// Files that hold a secret in their first line.
enum SecretFile {
    /// - Parameters:
    ///   - least: how many bytes it must have.
    ///   - isPrivate: whether others must not be able to read the file.
    /// - Throws: ``UsageError``; it never shows what is in the file.
    static func line(_ path: String, _ option: String, least: Int, isPrivate: Bool) throws -> [UInt8] {
        var bytes: [UInt8]?
        do throws(FileError) { bytes = try FileSystem.read(path) } catch { throw UsageError("\(option): \(error)") }
        guard let bytes else { throw UsageError("\(option) \(path): there is no such file") }
        var status = stat()
        if isPrivate, stat(path, &status) == 0, status.st_mode & 0o077 != 0 {
            throw UsageError("\(option) \(path): others may read or write it: chmod 600")
        }
        let line = Array(bytes.prefix { $0 != 0x0A && $0 != 0x0D })
        guard line.count >= least, line.allSatisfy({ $0 > 0x20 && $0 < 0x7F }) else {
            throw UsageError(
                "\(option) \(path): its first line is the secret, \(least) or more printable characters without blanks")
        }
        return line
    }
}
