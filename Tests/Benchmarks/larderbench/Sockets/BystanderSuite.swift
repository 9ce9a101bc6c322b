import LarderRESP

/// The latency of ordinary clients while another one sends a very long command.
final class BystanderSuite: Suite {
    /// The commands of the other client, in this order.
    enum Command: CaseIterable {
        case set, get, mset, exists, del

        fileprivate static let keyCount = 500_000
        fileprivate static let valueBytes = 512 << 20

        var title: String {
            switch self {
            case .set: "SET of 512 MiB"
            case .get: "GET of 512 MiB"
            case .mset: "MSET of 500,000 keys"
            case .exists: "EXISTS of 500,000 keys"
            case .del: "DEL of 500,000 keys"
            }
        }

        fileprivate var request: [UInt8] {
            let keys = (0..<Self.keyCount).lazy.map { Array("many:\($0)".utf8) }
            var request: [UInt8] = []
            func encode(_ name: String, _ words: [[UInt8]]) {
                RequestEncoder.encode([Array(name.utf8)] + words, into: &request)
            }
            switch self {
            case .set: encode("SET", [Array("long".utf8), [UInt8](repeating: 0x76, count: Self.valueBytes)])
            case .get: encode("GET", [Array("long".utf8)])
            case .mset: encode("MSET", keys.flatMap { [$0, Array("value of ".utf8) + $0] })
            case .exists: encode("EXISTS", Array(keys))
            case .del: encode("DEL", Array(keys))
            }
            return request
        }

        fileprivate func isAnswer(_ reply: RESPValue) -> Bool {
            switch (self, reply) {
            case (.set, .simpleString), (.mset, .simpleString): true
            case (.get, .bulk(let bytes)): bytes.count == Self.valueBytes
            case (.exists, .integer(let count)), (.del, .integer(let count)): count == Self.keyCount
            default: false
            }
        }
    }

    static func table(_ command: Command) -> String {
        "4 clients, 2000 a second, GET and SET, while another client sends a \(command.title)"
    }

    private let options: BenchOptions
    private let tree: TemporaryTree

    init(_ options: BenchOptions, _ tree: TemporaryTree) {
        self.options = options
        self.tree = tree
    }

    /// The ordinary clients start this many seconds before the command. They continue for a while after its reply, when
    /// a server may do deferred work.
    private static let lead = 0.5
    private var seconds: Double { options.isQuick ? 3 : 10 }

    func runRound(_ round: Int, into results: Results) throws(BenchError) {
        for contender in Contender.journaling.rotated(by: round) {
            Progress.note("  very long commands, \(contender.name)")
            try results.attempt("bystanders", contender, options, tree) { (server) throws(BenchError) in
                try server.fill(count: Load.keyCount, valueBytes: 64)
                let client = try SocketClient(path: server.socket)
                for command in Command.allCases {
                    results.add(Self.table(command), contender.name, try measure(command, client, server))
                }
            }
        }
    }

    private func measure(_ command: Command, _ client: SocketClient, _ server: RunningServer) throws(BenchError)
        -> [Metric: Double]
    {
        // Build the request before the time is measured, because building it takes as long as executing it.
        let request = command.request
        var load = Load.get(clients: 4)
        load.setPercent = 50
        load.pacePerSecond = 2000
        let bystanders = LoadTask(load, server)
        Clocks.sleep(Self.lead)
        let begin = Clocks.wall()
        let reply = Result { () throws(BenchError) in try client.ask(request) }
        let taken = Clocks.wall() - begin
        Clocks.sleep(seconds)
        let report = try bystanders.finish(now: true)
        guard command.isAnswer(try reply.get()) else { throw BenchError("\(command.title) got an unexpected answer") }
        try report.check()
        var figures = report.figures
        figures[.rate] = nil
        figures[.loadProcessor] = nil
        figures[.command] = taken * 1000
        return figures
    }
}
