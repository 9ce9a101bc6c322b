/// Measures how long after the deadlines of 1,000 entries their `expired` events arrive, among other entries with
/// lifetimes. The procedure is that of redis#15620.
final class ExpiryLagSuite: Suite {
    static let table = "`expired` events of 1,000 entries with lifetimes of 1 to 10 s, among others with lifetimes"
    static let eventCount = 1000
    private static let contenders = [Contender.larderEverySecond, .redisOff, .valkeyOff]
    /// The lifetimes of the other entries, in hours: a third lives for a day or longer.
    private static let hoursOfOthers = [0.2, 1, 6, 22, 24, 168]

    private let options: BenchOptions
    private let tree: TemporaryTree
    private let counts: [Int]
    private let events: Int
    /// The lifetimes of the entries whose events are measured, in seconds.
    private let lifetimes: ClosedRange<Double>
    /// How long after the last deadline events are awaited, in seconds. A missing event counts as that late.
    private let patience: Double

    init(
        _ options: BenchOptions, _ tree: TemporaryTree, events: Int = eventCount,
        lifetimes: ClosedRange<Double> = 1...10, patience: Double = 180
    ) {
        self.options = options
        self.tree = tree
        counts = [0, 10_000].filter { $0 < options.countsOfScale[0] } + options.countsOfScale
        self.events = events
        self.lifetimes = lifetimes
        self.patience = patience
    }

    static func row(_ contender: String, _ others: Int) -> String {
        contender + ", \(Metric.entries(others).title) others"
    }

    func runRound(_ round: Int, into results: Results) throws(BenchError) {
        for contender in Self.contenders.rotated(by: round) {
            let publishing = contender.with(nil, ["--notify-keyspace-events", "Ex"])
            for others in counts {
                let row = Self.row(contender.name, others)
                Progress.note("  expiry lag, \(row)")
                try results.attempt("\(others) others", publishing, options, tree) { (server) throws(BenchError) in
                    try fill(server, others)
                    results.add(Self.table, row, try measure(server))
                }
            }
        }
    }

    private func fill(_ server: RunningServer, _ count: Int) throws(BenchError) {
        guard count > 0 else { return }
        var load = Load.fill(count, valueBytes: 0)
        load.kinds = Self.hoursOfOthers.map {
            Load.Kind(valueBytes: 16, lifetimeMilliseconds: Int($0 * 3_600_000))
        }
        try LoadGenerator.run(load, server).check()
        server.settle()
    }

    func measure(_ server: RunningServer) throws(BenchError) -> [Metric: Double] {
        let (listener, writer) = (try SocketClient(path: server.socket), try SocketClient(path: server.socket))
        _ = try listener.ask(["SUBSCRIBE", "__keyevent@0__:expired"])
        var deadlines: [String: Double] = [:]
        let begin = Clocks.monotonic()
        // Deadlines are in milliseconds of the wall clock.
        let offset = Clocks.wall() - begin
        for number in 0..<events {
            let part = Double(number) / Double(max(1, events - 1))
            let lifetime = lifetimes.lowerBound + part * (lifetimes.upperBound - lifetimes.lowerBound)
            let deadline = ((begin + offset + lifetime) * 1000).rounded()
            let answer = try writer.ask(["SET", "lag:\(number)", "v", "PXAT", "\(Int(deadline))"])
            guard case .simpleString("OK") = answer else { throw BenchError("SET was answered with \(answer)") }
            deadlines["lag:\(number)"] = deadline / 1000 - offset
        }
        var lags = LatencyHistogram()
        while !deadlines.isEmpty, let message = try listener.message(before: begin + lifetimes.upperBound + patience) {
            guard case .array(let parts) = message, parts.count == 3, case .bulk(let key) = parts[2] else {
                throw BenchError("unexpected message \(message)")
            }
            // Redis may report the others too.
            guard let deadline = deadlines.removeValue(forKey: String(decoding: key, as: UTF8.self)) else { continue }
            let lag = Clocks.monotonic() - deadline
            guard lag >= 0 else { throw BenchError("an event arrived before its deadline") }
            lags.add(UInt64(lag * 1e9))
        }
        let received = Double(lags.count)
        for _ in deadlines { lags.add(UInt64(patience * 1e9)) }
        func milliseconds(_ share: Double) -> Double { Double(lags.percentile(share)) / 1e6 }
        return [
            .events: received, .p50: milliseconds(0.5), .p99: milliseconds(0.99), .p999: milliseconds(0.999),
        ]
    }
}
