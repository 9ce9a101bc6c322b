/// What one run of a script writes to the daemon's log.
struct ScriptLog {
    private let log: Log
    private var lines = 0

    /// Lines that one run may write, and the bytes of each.
    private static let linesMax = 100
    private static let bytesMax = 1024

    init(_ log: Log) { self.log = log }

    /// - Parameter level: 0 (debug) to 3 (warning).
    mutating func add(_ level: Int, _ text: UnsafeRawBufferPointer) {
        guard lines <= Self.linesMax else { return }
        lines += 1
        guard lines <= Self.linesMax else {
            return log.warning("a script wrote more than \(Self.linesMax) lines; its others are dropped")
        }
        let levels: [Log.Level] = [.debug, .debug, .info, .warning]
        log.write(
            levels[max(0, min(3, level))], "script: \(String(decoding: text.prefix(Self.bytesMax), as: UTF8.self))")
    }
}
