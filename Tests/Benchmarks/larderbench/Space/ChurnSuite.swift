/// Overwrites and expiry during a simulated day in which the sizes of values change: how much memory servers take for
/// the live entries.
final class ChurnSuite: Suite {
    static let larder = Contender.larder(memory: "4G")
    private static let contenders = [larder, .redisOff, .valkeyOff, .memcached]
    static let table =
        "Churn: resident bytes without mapped files / live bytes of keys and values, by the hour of a simulated day"
    private static let stepsPerHour = 2
    /// The number of SETs during the day for each key.
    private static let setsPerKey = 12

    private let options: BenchOptions
    private let tree: TemporaryTree
    private let keys: Int

    init(_ options: BenchOptions, _ tree: TemporaryTree, keys: Int? = nil) {
        self.options = options
        self.tree = tree
        self.keys = keys ?? (options.isQuick ? 100_000 : 1_000_000)
    }

    static func column(hour: Int) -> Metric { .at(hour, "\(hour) h") }

    /// The values of an hour: eight sizes, which double until noon, each with a lifetime of 1 to 48 hours that changes
    /// from step to step.
    private static func kinds(_ step: Int, millisecondsPerHour: Double) -> [Load.Kind] {
        let hour = Double(step) / Double(stepsPerHour)
        let growth = 1 + min(hour, 24 - hour) / 12
        let hours = [1.0, 2, 4, 8, 12, 24, 36, 48]
        return [48, 80, 130, 200, 300, 450, 700, 1000].enumerated().map { index, bytes in
            Load.Kind(
                valueBytes: Int(Double(bytes) * growth),
                lifetimeMilliseconds: Int(hours[(3 * index + step) % hours.count] * millisecondsPerHour) + 1)
        }
    }

    func runRound(_ round: Int, into results: Results) throws(BenchError) {
        for contender in Self.contenders.rotated(by: round) {
            Progress.note("  a day of churn, \(contender.name)")
            try results.attempt("churn", contender, options, tree) { (server) throws(BenchError) in
                results.add(Self.table, contender.name, try measure(server))
            }
        }
    }

    private func measure(_ server: RunningServer) throws(BenchError) -> [Metric: Double] {
        let steps = 24 * Self.stepsPerHour
        let seconds = options.secondsPerSimulation
        let kinds = { Self.kinds($0, millisecondsPerHour: seconds * 1000 / 24) }
        server.settle()
        let empty = server.ownMiB ?? .nan
        let ledger = Ledger(server.contender.dialect)
        var fill = Load.fill(keys, valueBytes: 0)
        fill.kinds = kinds(0)
        try LoadGenerator.run(fill, server, ledger: ledger).check()
        var figures: [Metric: Double] = [:]
        func sample(_ hour: Int) {
            let live = Double(ledger.liveBytes(at: Clocks.monotonic())) / 1_048_576
            figures[.live] = live
            let own = server.ownMiB ?? .nan
            figures[.own] = own
            figures[Self.column(hour: hour)] = (own - empty) / live
        }
        sample(0)
        let simulation = Simulation(
            steps: steps, secondsPerStep: seconds / Double(steps), setsPerStep: Self.setsPerKey * keys / steps,
            keys: keys, kinds: kinds)
        try simulation.run(server, ledger) { step in
            if step % (2 * Self.stepsPerHour) == 0 { sample(step / Self.stepsPerHour) }
        }
        return figures
    }
}
