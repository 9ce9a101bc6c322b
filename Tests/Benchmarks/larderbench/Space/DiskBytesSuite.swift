/// The bytes that a server writes to the disk for each byte of keys and values that it accepts, during a simulated hour
/// of overwrites and expiry. More than half of the data is overwritten within ten minutes; the rest expires within the
/// hour.
final class DiskBytesSuite: Suite {
    private static let contenders = [
        .larderEverySecond, rewriting(.redisEverySecond), rewriting(.valkeyEverySecond),
    ]
    private static let minutes = 60

    private let options: BenchOptions
    private let tree: TemporaryTree
    private let setCount: Int

    init(_ options: BenchOptions, _ tree: TemporaryTree, sets: Int? = nil) {
        self.options = options
        self.tree = tree
        setCount = sets ?? (options.isQuick ? 300_000 : 3_000_000)
    }

    static let table = "Disk bytes written per byte accepted, during a simulated hour of overwrites and expiry"

    /// The server with its default of rewriting the append-only file when it has doubled.
    private static func rewriting(_ contender: Contender) -> Contender {
        contender.with("rewritten", ["--auto-aof-rewrite-percentage", "100"])
    }

    func runRound(_ round: Int, into results: Results) throws(BenchError) {
        for contender in Self.contenders.rotated(by: round) {
            Progress.note("  disk bytes, \(contender.name)")
            try results.attempt("disk bytes", contender, options, tree) { (server) throws(BenchError) in
                results.add(Self.table, contender.name, try measure(server))
            }
        }
    }

    private func measure(_ server: RunningServer) throws(BenchError) -> [Metric: Double] {
        let secondsPerMinute = options.secondsPerSimulation / Double(Self.minutes)
        guard let before = server.diskBytesWritten else {
            throw BenchError("the kernel does not count the bytes that a process writes (/proc/PID/io)")
        }
        let kinds = [60, 128, 256, 512].enumerated().map { index, bytes in
            Load.Kind(
                valueBytes: bytes, lifetimeMilliseconds: Int(Double(15 * (index + 1)) * secondsPerMinute * 1000) + 1)
        }
        let ledger = Ledger(server.contender.dialect, shortLife: 10 * secondsPerMinute)
        // With ten keys for each SET, about half of the SETs repeat a key within ten minutes.
        let simulation = Simulation(
            steps: Self.minutes, secondsPerStep: secondsPerMinute, setsPerStep: setCount / Self.minutes,
            keys: 10 * setCount, kinds: { _ in kinds })
        try simulation.run(server, ledger) { minute in ledger.isJudging = minute < Self.minutes - 10 }
        guard let after = server.diskBytesWritten else { throw BenchError("the server has ended") }
        let accepted = Double(ledger.acceptedBytes)
        return [
            .accepted: accepted / 1_048_576, .shortLived: ledger.shortLivedPercent(at: Clocks.monotonic()),
            .diskWrites: (after - before) / accepted,
        ] + server.space
    }
}
