import LarderCommandCatalog
import LarderPlatform

/// The history file of the shell. Only the user can read it. For one thread at a time.
///
/// Each line is appended at once, so that several shells can use the file, and a crash loses no lines.
struct ShellHistory {
    /// If the file is larger than this, in bytes, only its last lines are kept.
    private static let bytesMax = 1 << 18
    /// Lines longer than this, in bytes, are not stored.
    private static let lineBytesMax = 1 << 14

    /// The path of the file; nil if neither `XDG_STATE_HOME` nor `HOME` is an absolute path.
    let path: String?

    /// Determines the path from `XDG_STATE_HOME`, or else from `HOME`.
    init() {
        func directory(_ name: String) -> String? {
            getenv(name).map { String(cString: $0) }.flatMap { $0.hasPrefix("/") ? $0 : nil }
        }
        path = (directory("XDG_STATE_HOME") ?? directory("HOME").map { $0 + "/.local/state" })
            .map { $0 + "/larder/history" }
    }

    /// Returns the stored lines, the oldest first. Shortens the file if it is too large.
    func lines() -> [String] {
        guard let path, let bytes = try? FileSystem.read(path, bytesMax: 16 * Self.bytesMax) else { return [] }
        let lines = bytes.suffix(Self.bytesMax).split(separator: 0x0A).suffix(LineEditor.historyMax)
        if bytes.count > Self.bytesMax {
            let part = path + ".\(getpid())"
            if (try? FileSystem.writeFile(part, Array(lines.joined(separator: [0x0A])) + [0x0A])) != nil {
                try? FileSystem.rename(part, to: path)
            }
        }
        return lines.compactMap { String(validating: $0, as: UTF8.self) }
    }

    /// Whether a line may be stored: it is not too long, is well-formed, and contains no password.
    static func keeps(_ line: String, words: [[UInt8]]?) -> Bool {
        guard let words, !words.isEmpty, line.utf8.count <= lineBytesMax else { return false }
        return !CommandMetadata.hasSecret(words)
    }

    /// Appends a line.
    /// - Throws: ``InputOutputError`` or ``FileError`` if the line cannot be stored.
    func append(_ line: String) throws {
        guard let path else { return }
        try FileSystem.makeDirectories(FileSystem.parent(path))
        // With O_RDWR, open(2) does not block if the path is a named pipe.
        let flags = O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW
        let descriptor = FileSystem.openFile(path, flags, 0o600)
        guard descriptor >= 0 else {
            if errno == ELOOP {
                // Accept a link to /dev/null, which is the usual way to disable a history.
                if FileSystem.canonical(path) == "/dev/null" { return }
                throw InputOutputError(
                    message: "\(path) is a link, which is not followed (a link to /dev/null disables the history)")
            }
            throw InputOutputError("\(path) could not be opened")
        }
        defer { close(descriptor) }
        var status = stat()
        guard fstat(descriptor, &status) == 0, status.st_mode & S_IFMT == S_IFREG else {
            throw InputOutputError(message: "\(path) is not a file")
        }
        // Another program may have created the file, so set the mode. The file's last line may lack a line break.
        fchmod(descriptor, 0o600)
        var last: UInt8 = 0x0A
        if status.st_size > 0 { _ = pread(descriptor, &last, 1, status.st_size - 1) }
        let bytes = (last == 0x0A ? [] : [0x0A]) + Array("\(line)\n".utf8)
        try FileSystem.writeAll(bytes, descriptor: descriptor, path: path)
    }

}
