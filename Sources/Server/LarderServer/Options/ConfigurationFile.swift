import LarderPlatform

/// A configuration file: one option in a line, `name = value` or `name value`, the names as on the command line.
///
/// Blank lines and those that begin with `#` say nothing, nor does what follows a `#` behind a blank. A value may stand in
/// double quotes, in which `\"` and `\\` are these characters.
struct ConfigurationFile {
    struct Line: Equatable {
        let number: Int
        let name: String
        /// Nil if the name stands alone.
        let value: String?
    }

    let path: String
    private(set) var lines: [Line] = []
    private var found: [(line: Int, text: String)] = []

    /// What is wrong with it, in the order of its lines, each with the path and the number of the line.
    var problems: [String] { found.sorted { $0.line < $1.line }.map { "\(path):\($0.line): \($0.text)" } }

    /// No larger file is read: 1 MiB.
    static let bytesMax = 1 << 20

    /// Reads a file.
    /// - Returns: nil if it does not exist.
    /// - Throws: why it cannot be used.
    init?(path: String) throws(OptionFailure) {
        // O_NONBLOCK: the open of a pipe would wait for somebody who writes.
        let file = FileSystem.openFile(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)
        guard file >= 0 else {
            if errno == ENOENT { return nil }
            throw OptionFailure("\(FileError(operation: "open", path: path, number: errno))")
        }
        defer { close(file) }
        if let problem = Self.problem(with: file) { throw OptionFailure("\(path): \(problem)") }
        let bytes: [UInt8]
        do throws(FileError) {
            bytes = try FileSystem.read(descriptor: file, path: path, bytesMax: Self.bytesMax + 1)
        } catch {
            throw OptionFailure("\(error)")
        }
        guard bytes.count <= Self.bytesMax else {
            throw OptionFailure("\(path): it is longer than \(Self.bytesMax) bytes, the most that is read")
        }
        self.init(path: path, bytes: bytes)
    }

    init(path: String, bytes: [UInt8]) {
        self.path = path
        for (index, line) in bytes.split(separator: 0x0A, omittingEmptySubsequences: false).enumerated() {
            read(line, index + 1)
        }
    }

    /// Why a file is not used: whoever can write it decides what the daemon does.
    private static func problem(with file: Int32) -> String? {
        var status = stat()
        guard fstat(file, &status) == 0 else { return SystemErrorText.of(errno) }
        guard status.st_mode & S_IFMT == S_IFREG else { return "it is not a regular file" }
        guard Int(status.st_size) <= bytesMax else {
            return "it has \(status.st_size) bytes; at most \(bytesMax) are read"
        }
        guard status.st_uid == 0 || status.st_uid == geteuid() else {
            return "it belongs to the user with uid \(status.st_uid): it must be root's or that of the user who runs "
                + "larderd (\(geteuid()))"
        }
        guard status.st_mode & 0o002 == 0 else { return "everybody may write it: chmod go-w" }
        guard status.st_mode & 0o020 == 0 else {
            return "the group with gid \(status.st_gid) may write it, and so decide what larderd does: chmod g-w"
        }
        return nil
    }

    private mutating func read(_ bytes: ArraySlice<UInt8>, _ number: Int) {
        var bytes = bytes
        if bytes.last == 0x0D { bytes.removeLast() }
        // Some editors begin a file with a byte order mark.
        if number == 1, bytes.starts(with: [0xEF, 0xBB, 0xBF]) { bytes.removeFirst(3) }
        guard !bytes.contains(0) else { return note(number, "there is a NUL in the line") }
        guard let text = String(validating: bytes, as: UTF8.self) else {
            return note(number, "the line is not UTF-8")
        }
        let content = text.drop(while: Self.isBlank)
        guard let first = content.unicodeScalars.first, first != "#" else { return }
        let name = content.prefix { !Self.isBlank($0) && $0 != "=" }
        var rest = content.dropFirst(name.count).drop(while: Self.isBlank)
        let hasEquals = rest.first == "="
        if hasEquals { rest = rest.dropFirst().drop(while: Self.isBlank) }
        guard !name.isEmpty else { return note(number, "there is no name in front of the '='") }
        switch Self.value(rest) {
        case .failure(let problem): note(number, problem.text)
        case .success(let value):
            if hasEquals, value == nil { return note(number, "\(name) has no value behind the '='") }
            lines.append(Line(number: number, name: String(name), value: value))
        }
    }

    private static func isBlank(_ character: Character) -> Bool { character == " " || character == "\t" }

    private struct Problem: Error { let text: String }

    /// The value at the beginning of `text`; nil if there is none.
    private static func value(_ text: Substring) -> Result<String?, Problem> {
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
                    return .failure(Problem(text: "there is something behind the closing quote"))
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
        return .failure(Problem(text: "the closing quote is missing"))
    }

    /// No value makes an error longer.
    private static let problemLengthMax = 400

    /// Notes what is wrong with a line.
    mutating func note(_ number: Int, _ problem: String) {
        let shown = problem.count > Self.problemLengthMax ? problem.prefix(Self.problemLengthMax) + "…" : problem[...]
        found.append((number, String(shown)))
    }
}
