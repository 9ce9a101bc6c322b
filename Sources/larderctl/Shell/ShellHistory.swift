import LarderCommandCatalog
import LarderPlatform

/// The history file of the shell, readable only by the user. Single owner.
///
/// Each line is appended separately, so that several shells can share the file, and a crash does not lose lines.
struct ShellHistory {
    /// A larger file is truncated to its last lines.
    private static let bytesMax = 1 << 18
    /// Longer lines are not stored.
    private static let lineBytesMax = 1 << 14

    /// Nil if there is no directory for it.
    let path: String?

    /// Uses `XDG_STATE_HOME`, or else the home directory.
    init() {
        func directory(_ name: String) -> String? {
            getenv(name).map { String(cString: $0) }.flatMap { $0.hasPrefix("/") ? $0 : nil }
        }
        path = (directory("XDG_STATE_HOME") ?? directory("HOME").map { $0 + "/.local/state" })
            .map { $0 + "/larder/history" }
    }

    /// The lines of previous shells, oldest first.
    func lines() -> [String] {
        guard let path, let bytes = try? FileSystem.read(path, bytesMax: 16 * Self.bytesMax) else { return [] }
        let lines = bytes.suffix(Self.bytesMax).split(separator: 0x0A).suffix(LineEditor.historyMax)
        if bytes.count > Self.bytesMax { try? replace(with: Array(lines.joined(separator: [0x0A])) + [0x0A]) }
        return lines.compactMap { String(validating: $0, as: UTF8.self) }
    }

    /// Whether a line may be stored: it must not contain a password.
    static func keeps(_ line: String, words: [[UInt8]]?) -> Bool {
        guard let words, !words.isEmpty, line.utf8.count <= lineBytesMax else { return false }
        return !CommandMetadata.hasSecret(words)
    }

    /// Appends a line.
    /// - Throws: ``InputOutputError`` if that fails.
    func append(_ line: String) throws {
        guard let path else { return }
        do {
            try FileSystem.makeDirectories(FileSystem.parent(path))
        } catch {
            throw InputOutputError(message: "cannot \(error)")
        }
        // O_RDWR does not block on a pipe.
        let flags = O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW
        let descriptor = FileSystem.openFile(path, flags, 0o600)
        guard descriptor >= 0 else {
            if errno == ELOOP {
                // A link to /dev/null is the usual way to disable the history.
                if FileSystem.canonical(path) == "/dev/null" { return }
                throw InputOutputError(
                    message: "\(path) is a link, which is not followed (a link to /dev/null disables the history)")
            }
            throw InputOutputError(message: "\(path) could not be opened: \(SystemErrorText.of(errno))")
        }
        defer { close(descriptor) }
        var status = stat()
        guard fstat(descriptor, &status) == 0, status.st_mode & S_IFMT == S_IFREG else {
            throw InputOutputError(message: "\(path) is not a file")
        }
        // The file may have been created by another program, and its last line may be incomplete.
        fchmod(descriptor, 0o600)
        var last: UInt8 = 0x0A
        if status.st_size > 0 { _ = pread(descriptor, &last, 1, status.st_size - 1) }
        let bytes = (last == 0x0A ? [] : [0x0A]) + Array("\(line)\n".utf8)
        try FileSystem.writeAll(bytes, descriptor: descriptor, path: path)
    }

    private func replace(with bytes: [UInt8]) throws {
        guard let path else { return }
        let part = path + ".\(getpid())"
        let descriptor = FileSystem.openFile(part, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { return }
        defer { close(descriptor) }
        try FileSystem.writeAll(bytes, descriptor: descriptor, path: part)
        rename(part, path)
    }
}
