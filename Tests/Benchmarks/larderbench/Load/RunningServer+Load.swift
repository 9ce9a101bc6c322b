extension RunningServer {
    /// Runs a load, and throws unless all replies are successful. The figures include the server's work until it is
    /// idle and, as a separate figure, its deferred work (see ``writeOut()``).
    func measure(_ load: Load) throws(BenchError) -> [Metric: Double] {
        let (report, processor) = try processorSeconds { () throws(BenchError) in try LoadGenerator.run(load, self) }
        try report.check()
        var figures = report.figures
        let count = Double(report.requests)
        figures[.processor] = processor * 1e6 / count
        if load.setPercent > 0 {
            let putOff =
                putsOff ? try processorSeconds { () throws(BenchError) in try writeOut() }.1 : 0
            figures[.processorAtRest] = figures[.processor]
            figures[.processor] = (processor + putOff) * 1e6 / count
        }
        return figures
    }

    /// Stores entries and waits until the server is idle and has done its deferred work. Does nothing for the null
    /// server.
    func fill(count: Int, valueBytes: Int, firstKey: Int = 0) throws(BenchError) {
        guard contender.program != .null else { return }
        var load = Load.fill(count, valueBytes: valueBytes, firstKey: firstKey)
        load.setWords = contender.fillWords
        try LoadGenerator.run(load, self).check()
        if putsOff {
            settle(quiet: 0.1)
            try writeOut()
        }
        settle()
    }
}
