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
        func two(_ value: Int32) -> String { value < 10 ? "0\(value)" : "\(value)" }
        let milliseconds = String(1000 + now.tv_nsec / 1_000_000).dropFirst()
        return "\(parts.tm_year + 1900)-\(two(parts.tm_mon + 1))-\(two(parts.tm_mday))T"
            + "\(two(parts.tm_hour)):\(two(parts.tm_min)):\(two(parts.tm_sec)).\(milliseconds)Z"
    }
}
