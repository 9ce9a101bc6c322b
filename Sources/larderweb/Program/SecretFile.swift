import LarderPlatform

/// Files with a secret in their first line.
enum SecretFile {
    /// Reads the token that clients must send.
    /// - Throws: ``UsageError``, which does not contain the file's contents.
    static func token(_ path: String, _ option: String) throws -> [UInt8] {
        let line = try line(path, option)
        var status = stat()
        // Group read access is allowed, because systemd's credentials have it.
        guard stat(path, &status) == 0 else {
            throw UsageError("\(option) \(path): cannot read it: \(SystemErrorText.of(errno))")
        }
        guard status.st_mode & 0o027 == 0 else {
            throw UsageError("\(option) \(path): other users can read or change it: chmod 640")
        }
        guard status.st_uid == 0 || status.st_uid == geteuid() else {
            throw UsageError("\(option) \(path): it belongs to another user (uid \(status.st_uid)), who can change it")
        }
        guard line.count >= tokenBytesMin, line.allSatisfy({ $0 > 0x20 && $0 < 0x7F }) else {
            throw UsageError(
                "\(option) \(path): the first line must be the token: \(tokenBytesMin) or more printable characters without spaces"
            )
        }
        return line
    }

    /// The minimum length of a token in bytes, so that it cannot be guessed.
    private static let tokenBytesMin = 16

    /// Reads the daemon's password. Throws the same errors as ``token(_:_:)``.
    static func password(_ path: String, _ option: String) throws -> String {
        let line = try line(path, option)
        guard !line.isEmpty, let text = String(validating: line, as: UTF8.self) else {
            throw UsageError("\(option) \(path): the first line must be the password, but is empty or not UTF-8")
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

/// An error in the command line. Its message describes the correct form.
struct UsageError: Error {
    let message: String

    init(_ message: String) { self.message = message }
}
