/// SET for so long that all deferred work is done repeatedly: the full cost of continuous writing.
final class SteadySuite: Suite {
    static let pipelines = [1, 16, 64]

    private let options: BenchOptions
    private let tree: TemporaryTree

    init(_ options: BenchOptions, _ tree: TemporaryTree) {
        self.options = options
        self.tree = tree
    }

    static func table(_ pipeline: Int) -> String { "\(Load.set(pipeline: pipeline).title), going on" }

    /// The writing time of each server: enough to fill the journal many times, in a full run.
    private var seconds: Double { options.secondsPerRun * (options.isQuick ? 15 : 20) }

    func runRound(_ round: Int, into results: Results) throws(BenchError) {
        for pipeline in Self.pipelines {
            Progress.note("  \(Self.table(pipeline))")
            for contender in Contender.journaling.rotated(by: round) {
                try results.attempt(Self.table(pipeline), contender, options, tree) { (server) throws(BenchError) in
                    try server.fill(count: Load.keyCount, valueBytes: 64)
                    var load = Load.set(pipeline: pipeline).lasting(seconds)
                    load.seed = UInt64(round + 1)
                    results.add(
                        Self.table(pipeline), contender.name,
                        try server.measure(load) + server.space)
                }
            }
        }
    }
}
