import LarderEngine
import LarderPlatform

/// Writes the log lines of a single run of a script, and limits their number.
struct ScriptLog {
    private let lines: LimitedLines
    private let writer: String
    private var count = 0

    /// The maximum number of lines that one run may log. `bytesMax` is the maximum length of a line, in bytes.
    private static let linesMax = 100
    private static let bytesMax = 1024

    /// - Parameter writer: the name of the client that has called or loaded the script.
    init(_ lines: LimitedLines, of writer: String) { (self.lines, self.writer) = (lines, writer) }

    /// Logs a line of the script.
    /// - Parameter level: from 0 (debug) to 3 (warning).
    mutating func add(_ level: Int, _ text: UnsafeRawBufferPointer) {
        guard count <= Self.linesMax else { return }
        let levels: [Log.Level] = [.debug, .debug, .info, .warning]
        let level = levels[max(0, min(3, level))]
        guard level >= lines.level else { return }
        count += 1
        guard count <= Self.linesMax else {
            return lines.add(
                .warning, "script of \(writer) wrote more than \(Self.linesMax) lines; the others are dropped")
        }
        lines.add(level, "script of \(writer): \(String(decoding: text.prefix(Self.bytesMax), as: UTF8.self))")
    }
}

extension LimitedLines {
    /// Creates the common limit for the log lines of all scripts.
    static func ofScripts(_ log: Log, clock: @escaping @Sendable () -> Int64) -> LimitedLines {
        LimitedLines(log, clock: clock) {
            " (" + counted($0, "line of scripts was", "lines of scripts were") + " dropped before this)"
        }
    }
}
