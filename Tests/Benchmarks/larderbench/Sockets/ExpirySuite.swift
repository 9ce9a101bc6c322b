/// Lets a million entries expire at the same time. Measures the latency of reads of other entries during that time, and
/// the time until the expired entries are removed.
final class ExpirySuite: Suite {
    static let table = "1,000,000 entries of 100 B expire at once; GET of others, 20 clients, 5000 a second"
    private static let count = 1_000_000
    /// Seconds from the first SET to the expiry.
    private static let lead = 25.0
    /// Reads start one second before the expiry, and stop this many seconds after it.
    private static let readSeconds = 15.0
    private static let patience = 150.0

    private let options: BenchOptions
    private let tree: TemporaryTree

    init(_ options: BenchOptions, _ tree: TemporaryTree) {
        self.options = options
        self.tree = tree
    }

    func runRound(_ round: Int, into results: Results) throws(BenchError) {
        Progress.note("  \(Self.table)")
        for contender in Contender.journaling.rotated(by: round) {
            try results.attempt("expiry", contender, options, tree) { (server) throws(BenchError) in
                try server.fill(count: Load.keyCount, valueBytes: 64)
                results.add(Self.table, contender.name, try measure(server))
            }
        }
    }

    private func measure(_ server: RunningServer) throws(BenchError) -> [Metric: Double] {
        let instant = Clocks.wall() + Self.lead
        var doomed = Load.fill(Self.count, valueBytes: 100, firstKey: 1_000_000)
        doomed.setWords = ["PXAT", "\(Int(instant * 1000))"]
        try LoadGenerator.run(doomed, server).check()
        guard Clocks.wall() < instant - 2 else { throw BenchError("filling took too long for this measurement") }
        while Clocks.wall() < instant - 1 {
            try Interruption.check()
            Clocks.sleep(0.05)
        }
        var reads = Load.get(clients: 20).lasting(1 + Self.readSeconds)
        reads.pacePerSecond = 5000
        let readers = LoadTask(reads, server)
        let watching = Result { () throws(BenchError) in try watch(server, from: instant) }
        let report = try readers.finish(now: false)
        try report.check()
        var figures = report.figures + (try watching.get())
        figures[.rate] = nil
        figures[.loadProcessor] = nil
        server.settle()
        return figures + server.space
    }

    /// Polls the number of removed expired entries, which costs the server next to nothing.
    private func watch(_ server: RunningServer, from instant: Double) throws(BenchError) -> [Metric: Double] {
        let client = try SocketClient(path: server.socket)
        var figures: [Metric: Double] = [:]
        while Clocks.wall() < instant + Self.patience {
            try Interruption.check()
            Clocks.sleep(0.1)
            let gone = try client.infoNumber("stats", "expired_keys")
            let seconds = max(0, Clocks.wall() - instant)
            if gone >= 1000, figures[.reclaimBegin] == nil { figures[.reclaimBegin] = seconds }
            if gone >= Self.count {
                figures[.reclaim] = seconds
                return figures
            }
        }
        // Check the number of entries, because entries may have been removed in another way than by expiry.
        guard try server.entryCount() == Load.keyCount else {
            throw BenchError("expired entries are still there after \(Int(Self.patience)) s")
        }
        return figures
    }
}
