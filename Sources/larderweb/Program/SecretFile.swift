import LarderPlatform

/// Files that hold a secret in their first line.
enum SecretFile {
    /// A token that this program asks others for.
    /// - Throws: ``UsageError``; it never shows what is in the file.
    static func token(_ path: String, _ option: String) throws -> [UInt8] {
        let line = try line(path, option)
        var status = stat()
        // A group may read it: credentials that systemd hands over look like that, too.
        guard stat(path, &status) == 0 else {
            throw UsageError("\(option) \(path): it cannot be looked at: \(SystemErrorText.of(errno))")
        }
        guard status.st_mode & 0o027 == 0 else {
            throw UsageError("\(option) \(path): others may read it, or change it: chmod 640")
        }
        guard status.st_uid == 0 || status.st_uid == geteuid() else {
            throw UsageError("\(option) \(path): it belongs to another user (uid \(status.st_uid)), who may change it")
        }
        guard line.count >= tokenBytesMin, line.allSatisfy({ $0 > 0x20 && $0 < 0x7F }) else {
            throw UsageError(
                "\(option) \(path): its first line is the token, \(tokenBytesMin) or more printable characters without spaces"
            )
        }
        return line
    }

    /// What nobody guesses.
    private static let tokenBytesMin = 16

    /// The daemon's password. Errors as for ``token(_:_:)``.
    static func password(_ path: String, _ option: String) throws -> String {
        let line = try line(path, option)
        guard !line.isEmpty, let text = String(validating: line, as: UTF8.self) else {
            throw UsageError("\(option) \(path): its first line must be the password, as text")
        }
        return text
    }

    private static func line(_ path: String, _ option: String) throws -> [UInt8] {
        var bytes: [UInt8]?
        do throws(FileError) { bytes = try FileSystem.read(path) } catch {
            throw UsageError("\(option): cannot \(error)")
        }
        guard let bytes else { throw UsageError("\(option) \(path): there is no such file") }
        return Array(bytes.prefix { $0 != 0x0A && $0 != 0x0D })
    }
}
