/// Measures work in this process: the elapsed time, and the CPU time of all threads. The CPU time includes later
/// compactions and deferred work.
enum Stopwatch {
    /// - Parameter writeOut: does the deferred work of `body`. Like LevelDB's compactions, it counts as CPU time, not
    ///   as elapsed time.
    static func measure(
        operations: Int, writeOut: () throws -> Void = {}, _ body: () throws -> Void
    ) rethrows -> [Metric: Double] {
        Clocks.settle(quiet: 0.1) { Clocks.ownProcessor() }
        return try take(operations, body) {
            try writeOut()
            Clocks.settle { Clocks.ownProcessor() }
        }
    }

    /// Like ``measure(operations:writeOut:_:)``, for work that defers nothing. Does not wait until the process is idle,
    /// so it can be called often.
    static func measureOnly(operations: Int, _ body: () throws -> Void) rethrows -> [Metric: Double] {
        try take(operations, body) {}
    }

    /// - Parameter rest: the deferred work, which counts as CPU time, not as elapsed time.
    private static func take(
        _ operations: Int, _ body: () throws -> Void, rest: () throws -> Void
    ) rethrows -> [Metric: Double] {
        let processorStart = Clocks.ownProcessor()
        let start = Clocks.monotonic()
        try body()
        let wall = Clocks.monotonic() - start
        try rest()
        let processor = Clocks.ownProcessor() - processorStart
        let count = Double(max(operations, 1))
        return [.processor: processor * 1e6 / count, .wall: wall * 1e6 / count]
    }
}
