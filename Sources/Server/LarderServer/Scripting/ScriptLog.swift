import LarderEngine
import LarderPlatform

/// The log lines of one run of a script.
struct ScriptLog {
    private let lines: LimitedLines
    private let writer: String
    private var count = 0

    /// The most lines of one run, and the most bytes of each.
    private static let linesMax = 100
    private static let bytesMax = 1024

    /// - Parameter writer: the owner of the script.
    init(_ lines: LimitedLines, of writer: String) {
        self.lines = lines
        self.writer = writer
    }

    /// - Parameter level: 0 (debug) to 3 (warning).
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
    /// The limit on the lines of all scripts.
    static func ofScripts(_ log: Log, clock: @escaping @Sendable () -> Int64) -> LimitedLines {
        LimitedLines(log, clock: clock) { " (\($0) lines of scripts were dropped before this)" }
    }
}
