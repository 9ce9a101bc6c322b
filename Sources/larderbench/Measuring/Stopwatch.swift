/// Measures work in this process: the time that passed, and the processor time of all threads, that of the compactions
/// which the work left behind included, and of what was put off.
enum Stopwatch {
    /// - Parameter writeOut: does what `body` may have put off; its processor time counts, its time does not, as that of
    ///   LevelDB's compactions does not.
    static func measure(
        operations: Int, writeOut: () throws -> Void = {}, _ body: () throws -> Void
    ) rethrows -> [Metric: Double] {
        Clocks.settle(quiet: 0.1) { Clocks.ownProcessor() }
        return try take(operations, body) {
            try writeOut()
            Clocks.settle { Clocks.ownProcessor() }
        }
    }

    /// Like ``measure(operations:writeOut:_:)`` for what leaves no work behind: waits for nothing, and can be taken again
    /// and again for little.
    static func measureOnly(operations: Int, _ body: () throws -> Void) rethrows -> [Metric: Double] {
        try take(operations, body) {}
    }

    /// - Parameter rest: its processor time counts, its time does not.
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
