/// Measures work in this process: the time that passed, and the processor time of all threads, that of the compactions
/// which the work left behind included.
enum Stopwatch {
    static func measure(operations: Int, _ body: () throws -> Void) rethrows -> [Metric: Double] {
        Clocks.settle(quiet: 0.1) { Clocks.ownProcessor() }
        let processorStart = Clocks.ownProcessor()
        let start = Clocks.monotonic()
        try body()
        let wall = Clocks.monotonic() - start
        Clocks.settle { Clocks.ownProcessor() }
        let processor = Clocks.ownProcessor() - processorStart
        let count = Double(max(operations, 1))
        return [.processor: processor * 1e6 / count, .wall: wall * 1e6 / count]
    }
}
