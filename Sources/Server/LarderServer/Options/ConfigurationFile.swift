import LarderPlatform
import LarderServices

/// A parsed configuration file. Each line is an option, `name = value` or `name value`, named as on the command line.
///
/// Ignores empty lines, lines that start with `#`, and text that follows a space and `#`. A value may be in double
/// quotes; in these, `\"` means `"`, and `\\` means `\`.
struct ConfigurationFile {
    struct Line: Equatable {
        let number: Int
        let name: String
        /// The value; nil if the line contains only a name.
        let value: String?
    }

    let path: String
    private(set) var lines: [Line] = []
    private var found: [(line: Int, text: String)] = []

    /// The errors in the file, ordered by line. Each begins with the file's path and the line number.
    var problems: [String] { found.sorted { $0.line < $1.line }.map { "\(path):\($0.line): \($0.text)" } }

    /// The maximum size of the file in bytes: 1 MiB.
    static let bytesMax = 1 << 20

    /// Reads a file.
    /// - Returns: nil if the file does not exist.
    /// - Throws: an error if the file cannot be read, or must not be used.
    init?(path: String) throws(UsageError) {
        // Without O_NONBLOCK, opening a named pipe would wait for a writer.
        let file = FileSystem.openFile(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)
        guard file >= 0 else {
            if errno == ENOENT { return nil }
            throw UsageError("\(FileError(operation: "open", path: path, number: errno))")
        }
        defer { close(file) }
        if let problem = Self.problem(with: file) { throw UsageError("\(path): \(problem)") }
        let bytes: [UInt8]
        do throws(FileError) {
            bytes = try FileSystem.read(descriptor: file, path: path, bytesMax: Self.bytesMax + 1)
        } catch {
            throw UsageError("\(error)")
        }
        guard bytes.count <= Self.bytesMax else {
            throw UsageError("\(path): it is longer than \(Self.bytesMax) bytes, the limit")
        }
        self.init(path: path, bytes: bytes)
    }

    init(path: String, bytes: [UInt8]) {
        self.path = path
        for (index, line) in bytes.split(separator: 0x0A, omittingEmptySubsequences: false).enumerated() {
            read(line, index + 1)
        }
    }

    /// Returns the reason why a file must not be used; nil if the file may be used. For example, other users must not
    /// be able to write to the file: they could control the daemon.
    private static func problem(with file: Int32) -> String? {
        var status = stat()
        guard fstat(file, &status) == 0 else { return SystemErrorText.of(errno) }
        guard status.st_mode & S_IFMT == S_IFREG else { return "it is not a regular file" }
        guard Int(status.st_size) <= bytesMax else {
            return "it has \(status.st_size) bytes; at most \(bytesMax) are read"
        }
        guard status.st_uid == 0 || status.st_uid == geteuid() else {
            return "it belongs to the user with uid \(status.st_uid): its owner must be root or the user who runs "
                + "larderd (\(geteuid()))"
        }
        guard status.st_mode & 0o002 == 0 else { return "all users can write to it: chmod go-w" }
        guard status.st_mode & 0o020 == 0 else {
            return "the group with gid \(status.st_gid) can write to it, and so control larderd: chmod g-w"
        }
        return nil
    }

    private mutating func read(_ bytes: ArraySlice<UInt8>, _ number: Int) {
        var bytes = bytes
        if bytes.last == 0x0D { bytes.removeLast() }
        // Some editors start a file with a byte order mark.
        if number == 1, bytes.starts(with: [0xEF, 0xBB, 0xBF]) { bytes.removeFirst(3) }
        guard !bytes.contains(0) else { return note(number, "the line contains a NUL") }
        guard let text = String(validating: bytes, as: UTF8.self) else { return note(number, "the line is not UTF-8") }
        let content = text.drop(while: Self.isBlank)
        guard let first = content.unicodeScalars.first, first != "#" else { return }
        let name = content.prefix { !Self.isBlank($0) && $0 != "=" }
        var rest = content.dropFirst(name.count).drop(while: Self.isBlank)
        let hasEquals = rest.first == "="
        if hasEquals { rest = rest.dropFirst().drop(while: Self.isBlank) }
        guard !name.isEmpty else { return note(number, "there is no name before the '='") }
        switch Self.value(rest) {
        case .failure(let problem): note(number, problem.message)
        case .success(let value):
            if hasEquals, value == nil { return note(number, "\(name) has no value after the '='") }
            lines.append(Line(number: number, name: String(name), value: value))
        }
    }

    private static func isBlank(_ character: Character) -> Bool { character == " " || character == "\t" }

    /// Returns the value at the start of `text`, without quotes and comment; nil if there is none.
    private static func value(_ text: Substring) -> Result<String?, UsageError> {
        guard text.first == "\"" else {
            var value = text
            if value.first == "#" { return .success(nil) }
            for index in value.indices.dropFirst()
            where value[index] == "#" && isBlank(value[value.index(before: index)]) {
                value = value[..<index]
                break
            }
            while let last = value.last, isBlank(last) { value.removeLast() }
            return .success(value.isEmpty ? nil : String(value))
        }
        var value = ""
        var rest = text.dropFirst()
        while let character = rest.popFirst() {
            if character == "\"" {
                let behind = rest.drop(while: isBlank)
                guard behind.isEmpty || behind.first == "#" else {
                    return .failure(UsageError("there is text after the closing quote"))
                }
                return .success(value)
            }
            if character == "\\", let next = rest.first, next == "\"" || next == "\\" {
                value.append(next)
                rest.removeFirst()
            } else {
                value.append(character)
            }
        }
        return .failure(UsageError("the closing quote is missing"))
    }

    /// The length in characters beyond which an error is shortened. Errors may contain long values.
    private static let problemLengthMax = 400

    /// Records an error about the line with this number.
    mutating func note(_ number: Int, _ problem: String) {
        let shown = problem.count > Self.problemLengthMax ? problem.prefix(Self.problemLengthMax) + "…" : problem[...]
        found.append((number, String(shown)))
    }
}
