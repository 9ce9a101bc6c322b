import LarderPlatform

/// The format of a line in the log.
package enum LogFormat: String, Sendable, CaseIterable {
    /// `time level message`, for people to read.
    case text
    /// `<6>message`, for systemd's journal: the number is the priority (sd-daemon(3)), and the journal adds the time.
    case systemd
    /// A JSON object with `time`, `level` and `message`.
    case json

    /// The format for standard error: ``systemd`` if standard error is connected to systemd's journal, else ``text``.
    /// `JOURNAL_STREAM` may be set although standard error was redirected, so compare its device and inode.
    package static var automatic: LogFormat {
        var status = stat()
        guard let stream = getenv("JOURNAL_STREAM"), fstat(STDERR_FILENO, &status) == 0 else { return .text }
        return String(cString: stream) == "\(status.st_dev):\(status.st_ino)" ? .systemd : .text
    }

    func line(_ level: Log.Level, _ message: String, time: String) -> String {
        switch self {
        case .text: "\(time) \(level) \(Self.clean(message))\n"
        case .systemd: "<\(Self.priority(level))>\(Self.clean(message))\n"
        case .json: "{\"time\":\"\(time)\",\"level\":\"\(level)\",\"message\":\"\(Self.escaped(message))\"}\n"
        }
    }

    /// Returns the priority of a level as defined by syslog(3).
    private static func priority(_ level: Log.Level) -> Int {
        switch level {
        case .debug: 7
        case .info: 6
        case .warning: 4
        case .error: 3
        }
    }

    /// Replaces line breaks and other control characters by spaces, because paths and client names may contain them.
    package static func clean(_ message: String) -> String {
        var clean = String.UnicodeScalarView()
        for scalar in message.unicodeScalars { clean.append(scalar.steersTerminal ? " " : scalar) }
        return String(clean)
    }

    /// Escapes a text for a JSON string. Does not add the quotes. Also escapes all characters that a terminal would
    /// interpret.
    package static func escaped(_ text: String) -> String {
        var (escaped, rest) = ("", text.unicodeScalars[...])
        while let index = rest.firstIndex(where: { $0 == "\"" || $0 == "\\" || $0.steersTerminal }) {
            escaped.unicodeScalars += rest[..<index]
            switch rest[index] {
            case "\"", "\\": escaped += "\\\(rest[index])"
            case "\n": escaped += "\\n"
            case "\r": escaped += "\\r"
            case "\t": escaped += "\\t"
            case let scalar:
                let digits = String(scalar.value, radix: 16)
                escaped += "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
            }
            rest = rest[rest.index(after: index)...]
        }
        escaped.unicodeScalars += rest
        return escaped
    }
}
