import LarderPlatform

/// The format of a line in the log.
package enum LogFormat: String, Sendable, CaseIterable {
    /// `time level message`: for people.
    case text
    /// `<6>message`: systemd's journal takes the priority from it (sd-daemon(3)), and adds the time itself.
    case systemd
    /// An object with `time`, `level` and `message`.
    case json

    /// The format for standard error: ``systemd`` if it is a stream of systemd's journal according to `JOURNAL_STREAM`,
    /// else ``text``. A service whose output is redirected has that variable too.
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

    /// The priorities of syslog(3).
    private static func priority(_ level: Log.Level) -> Int {
        switch level {
        case .debug: 7
        case .info: 6
        case .warning: 4
        case .error: 3
        }
    }

    /// Returns the message as one line, whatever characters a path or a client's name contains.
    package static func clean(_ message: String) -> String {
        var clean = String.UnicodeScalarView()
        for scalar in message.unicodeScalars { clean.append(scalar.steersTerminal ? " " : scalar) }
        return String(clean)
    }

    /// A text for a JSON string, without its quotes.
    package static func escaped(_ message: String) -> String {
        var escaped = ""
        for scalar in message.unicodeScalars {
            if scalar == "\"" || scalar == "\\" {
                escaped += "\\\(scalar)"
            } else if scalar.steersTerminal {
                let digits = String(scalar.value, radix: 16)
                escaped += "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
            } else {
                escaped.unicodeScalars.append(scalar)
            }
        }
        return escaped
    }
}
