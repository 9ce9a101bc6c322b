/// How long a server with many entries takes from its start to its first PONG and to the first value, and what it holds.
final class StartSuite: Suite {
    private static let contenders: [Contender] = [.larderEverySecond, .redisEverySecond]

    private let options: BenchOptions
    private let tree: TemporaryTree
    private let entries: Int
    private var directories: [String: String] = [:]

    init(_ options: BenchOptions, _ tree: TemporaryTree) {
        self.options = options
        self.tree = tree
        entries = options.isQuick ? 200_000 : 1_000_000
    }

    static func table(quick: Bool) -> String {
        "Start with \(quick ? "200,000" : "1,000,000") entries of 100 B, until the first PONG and the first value"
    }

    func runRound(_ round: Int, into results: Results) throws(BenchError) {
        let table = Self.table(quick: options.isQuick)
        Progress.note("  \(table)")
        for (position, contender) in Self.contenders.enumerated() {
            do throws(BenchError) {
                let directory = try filled(contender, position)
                let server = try RunningServer(contender, options, directory: directory)
                let firstRead = try server.readAfterStart()
                let processor = server.processorSeconds ?? .nan
                server.settle()
                results.add(
                    table, contender.name,
                    [
                        .start: server.startMilliseconds, .firstRead: firstRead, .startProcessor: processor * 1000,
                        .resident: server.residentMiB ?? .nan, .disk: server.diskMiB,
                    ])
                server.stop()
            } catch {
                try Interruption.check()
                results.fail("\(contender.name), start", error)
            }
        }
    }

    /// The directory of a server that was filled once, in the first round, and stopped.
    private func filled(_ contender: Contender, _ position: Int) throws(BenchError) -> String {
        if let directory = directories[contender.name] { return directory }
        let directory = try tree.makeDirectory("start\(position)")
        let server = try RunningServer(contender, options, directory: directory)
        try server.fill(count: entries, valueBytes: 100)
        server.stop()
        directories[contender.name] = directory
        return directory
    }
}
