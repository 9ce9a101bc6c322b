/// Measures how long a server with a million entries takes from its start to its first PONG and to the first value.
/// Before that, it was stopped normally, or killed just after the last writes.
final class StartSuite: Suite {
    enum Ending: String, CaseIterable {
        case crash = "after kill -9"
        case stop = "after a clean stop"
    }

    static let table = "Start with 1,000,000 entries of 100 B, until the first PONG and the first value"
    private static let count = 1_000_000

    private let options: BenchOptions
    private let tree: TemporaryTree

    init(_ options: BenchOptions, _ tree: TemporaryTree) {
        self.options = options
        self.tree = tree
    }

    static func row(_ contender: Contender, _ ending: Ending) -> String { "\(contender.name), \(ending.rawValue)" }

    func runRound(_ round: Int, into results: Results) throws(BenchError) {
        Progress.note("  \(Self.table)")
        for contender in Contender.journaling.rotated(by: round) {
            try results.attempt("\(contender.name), start") { () throws(BenchError) in
                let directory = try tree.makeDirectory("start")
                defer { TemporaryTree.remove(directory) }
                let first = try RunningServer(contender, options, directory: directory)
                try LoadGenerator.run(.fill(Self.count, valueBytes: 100), first).check()
                first.crash()
                // Each start is measured after the previous server has ended in this way.
                for ending in [Ending.crash, .stop] {
                    let server = try RunningServer(contender, options, directory: directory)
                    let firstRead = try server.readAfterStart()
                    let processor = server.processorSeconds ?? .nan
                    server.settle()
                    results.add(
                        Self.table, Self.row(contender, ending),
                        [
                            .start: server.startMilliseconds, .firstRead: firstRead, .startProcessor: processor * 1000,
                            .disk: server.diskMiB, .entries: Double(try server.entryCount()),
                        ])
                    server.stop()
                }
            }
        }
    }
}
