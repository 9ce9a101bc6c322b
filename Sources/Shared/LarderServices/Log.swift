import LarderPlatform
import Synchronization

/// A program's log: one line per event, on standard error by default. Do not log values of entries or passwords.
///
/// If the reader of the log is slow, lines are dropped and counted, and the program is not blocked: see ``LogWriter``.
///
/// Thread-safe: each line is written with one call of write(2).
package final class Log: Sendable {
    package enum Level: Int, Comparable, Sendable, CaseIterable {
        case debug, info, warning, error
        package static func < (left: Level, right: Level) -> Bool { left.rawValue < right.rawValue }

        package init?(_ name: String) {
            guard let level = Self.allCases.first(where: { "\($0)" == name.lowercased() }) else { return nil }
            self = level
        }
    }

    /// A log that writes nothing.
    package static var none: Log { Log(least: .error, descriptor: -1) }

    private let least: Atomic<Int>
    package let format: LogFormat
    private let descriptor: Int32
    /// Writes the lines in a separate thread; nil if the descriptor is a file, where writes do not wait for a reader.
    private let writer: LogWriter?

    /// The lowest level that is written; less important events are ignored.
    package var level: Level {
        get { Level(rawValue: least.load(ordering: .relaxed)) ?? .info }
        set { least.store(newValue.rawValue, ordering: .relaxed) }
    }

    package init(least: Level, format: LogFormat = .text, descriptor: Int32 = STDERR_FILENO) {
        self.least = Atomic(least.rawValue)
        self.format = format
        self.descriptor = descriptor
        writer =
            Self.mayWait(descriptor)
            ? LogWriter(descriptor) { count in
                format.line(
                    .warning,
                    "\(count) \(count == 1 ? "line was" : "lines were") lost here, because this log was not read",
                    time: Self.timestamp())
            } : nil
    }

    deinit { writer?.end() }

    /// Whether a write may block because nothing reads at the other end: for a pipe, a socket or a terminal.
    private static func mayWait(_ descriptor: Int32) -> Bool {
        var status = stat()
        guard fstat(descriptor, &status) == 0 else { return false }
        switch status.st_mode & S_IFMT {
        case S_IFIFO, S_IFSOCK: return true
        case S_IFCHR: return isatty(descriptor) == 1
        default: return false
        }
    }

    /// Waits until all lines are written, for at most a second. Call it before the program terminates.
    /// - Returns: whether all lines were written.
    @discardableResult
    package func flush() -> Bool { writer?.flush(milliseconds: 1000) ?? true }

    package func debug(_ message: String) { write(.debug, message) }
    package func info(_ message: String) { write(.info, message) }
    package func warning(_ message: String) { write(.warning, message) }
    package func error(_ message: String) { write(.error, message) }

    package func write(_ level: Level, _ message: String) {
        guard level.rawValue >= least.load(ordering: .relaxed) else { return }
        let line = Array(format.line(level, message, time: Self.timestamp()).utf8)
        if let writer { return writer.write(line) }
        _ = line.withUnsafeBytes { systemWrite(descriptor, $0.baseAddress, $0.count) }
    }

    /// Returns the current time in UTC in the format of RFC 3339, with milliseconds.
    private static func timestamp() -> String {
        var now = timespec()
        clock_gettime(CLOCK_REALTIME, &now)
        var seconds = now.tv_sec
        var parts = tm()
        gmtime_r(&seconds, &parts)
        func two(_ value: Int32) -> String { value.zeroPadded(2) }
        let milliseconds = (now.tv_nsec / 1_000_000).zeroPadded(3)
        return "\(parts.tm_year + 1900)-\(two(parts.tm_mon + 1))-\(two(parts.tm_mday))T"
            + "\(two(parts.tm_hour)):\(two(parts.tm_min)):\(two(parts.tm_sec)).\(milliseconds)Z"
    }
}

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
        // Most texts need no escapes, and comparing their bytes is fast.
        if text.utf8.allSatisfy({ 0x20...0x7E ~= $0 && $0 != 0x22 && $0 != 0x5C }) { return text }
        var (escaped, rest) = ("", text.unicodeScalars[...])
        while let index = rest.firstIndex(where: { $0 == "\"" || $0 == "\\" || $0.steersTerminal }) {
            escaped.unicodeScalars += rest[..<index]
            switch rest[index] {
            case "\"", "\\": escaped += "\\\(rest[index])"
            case "\n": escaped += "\\n"
            case "\r": escaped += "\\r"
            case "\t": escaped += "\\t"
            case let scalar: escaped += "\\u" + scalar.value.zeroPadded(4, radix: 16)
            }
            rest = rest[rest.index(after: index)...]
        }
        escaped.unicodeScalars += rest
        return escaped
    }
}
