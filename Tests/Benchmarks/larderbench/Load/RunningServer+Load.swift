extension RunningServer {
    /// Runs a load, and throws unless all replies are successful. The figures include the server's work until it is
    /// idle and, as a separate figure, its deferred work (see ``writeOut()``).
    func measure(_ load: Load) throws(BenchError) -> [Metric: Double] {
        var (report, usage) = try self.usage { () throws(BenchError) in try LoadGenerator.run(load, self) }
        try report.check()
        var figures = report.figures
        if load.setPercent > 0 {
            figures[.processorAtRest] = usage.figures(operations: report.requests)[.processor]
            if putsOff { usage = usage + (try self.usage { () throws(BenchError) in try writeOut() }.1) }
        }
        return figures + usage.figures(operations: report.requests)
    }

    /// Stores entries and waits until the server is idle and has done its deferred work. Does nothing for the null
    /// server.
    func fill(count: Int, valueBytes: Int, lifetimeMilliseconds: Int? = nil) throws(BenchError) {
        guard contender.program != .null else { return }
        var load = Load.fill(count, valueBytes: valueBytes)
        load.kinds = [Load.Kind(valueBytes: valueBytes, lifetimeMilliseconds: lifetimeMilliseconds)]
        load.setWords = contender.fillWords
        try LoadGenerator.run(load, self).check()
        if putsOff {
            settle(quiet: 0.1)
            try writeOut()
        }
        settle()
    }
}
