import LarderEngine
import Platform

/// What one run of a script writes to the daemon's log.
struct ScriptLog {
    private let lines: ScriptLines
    private let writer: String
    private var count = 0

    /// Lines that one run may write, and the bytes of each.
    private static let linesMax = 100
    private static let bytesMax = 1024

    /// - Parameter writer: whose script it is.
    init(_ lines: ScriptLines, of writer: String) {
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
            return lines.add(.warning, "\(writer) wrote more than \(Self.linesMax) lines; its others are dropped")
        }
        lines.add(level, "\(writer): \(String(decoding: text.prefix(Self.bytesMax), as: UTF8.self))")
    }
}

/// The lines that all scripts write to the daemon's log: a hundred, and one a second when these are used up, so that nobody
/// fills the disk with them.
///
/// Thread-safe. The proof for `@unchecked Sendable`: what changes is read and written with the lock held.
final class ScriptLines: @unchecked Sendable {
    private let log: Log
    private let clock: @Sendable () -> Int64
    private let lock = Lock()
    private var allowed = ScriptLines.allowedMax
    private var refilledAt: Int64
    private var dropped = 0

    static let allowedMax: Int64 = 100
    static let eachMilliseconds: Int64 = 1000

    /// - Parameter clock: milliseconds of the monotonic clock.
    init(_ log: Log, clock: @escaping @Sendable () -> Int64) {
        self.log = log
        self.clock = clock
        refilledAt = clock()
    }

    /// The least important lines that are written.
    var level: Log.Level { log.level }

    func add(_ level: Log.Level, _ line: String) {
        guard let dropped = take() else { return }
        log.write(
            level, "script of " + line + (dropped > 0 ? " (\(dropped) lines of scripts were dropped before this)" : ""))
    }

    /// - Returns: how many lines were dropped since the last one; nil if this one is.
    private func take() -> Int? {
        let now = clock()
        return lock.withLock {
            let refill = (now - refilledAt) / Self.eachMilliseconds
            if refill > 0 {
                allowed = min(Self.allowedMax, allowed + refill)
                refilledAt += refill * Self.eachMilliseconds
            }
            guard allowed > 0 else {
                dropped += 1
                return nil
            }
            allowed -= 1
            defer { dropped = 0 }
            return dropped
        }
    }
}
