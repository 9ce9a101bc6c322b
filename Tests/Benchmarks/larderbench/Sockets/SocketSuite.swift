/// SET and GET over a Unix-domain socket: Larder, redis-server, memcached and a null server.
///
/// All servers of a round run at the same time, each with its own files. For each load, the servers are measured one
/// after the other, so that disturbances of the machine affect them equally.
final class SocketSuite: Suite {
    /// FETCH of fresh entries, for comparison with GET.
    static let fetchRow = Contender.larderEverySecond.name + ", FETCH"

    static let spaceTable = "Space with 100,000 entries of 64 B, after filling"

    private let options: BenchOptions
    private let tree: TemporaryTree

    init(_ options: BenchOptions, _ tree: TemporaryTree) {
        self.options = options
        self.tree = tree
    }

    /// GET does not wait for the disk, so it is not measured for variants that differ only in how they write to the
    /// disk.
    private var readers: [Contender] {
        let all: [Contender] = [
            .larderEverySecond, .larderTags, .larderThreads, .redisOff, .valkeyOff, .memcached, .null,
        ]
        return options.isQuick
            ? all : all + [.larderDefault, .larderCold, .redisEverySecond, .valkeyEverySecond]
    }

    private var writers: [Contender] {
        let all: [Contender] = [
            .larderEverySecond, .larderAlways, .larderThreads, .redisEverySecond, .redisAlways, .valkeyEverySecond,
            .valkeyAlways,
        ]
        return options.isQuick
            ? all : all + [.larderOS, .larderDefault, .larderCold, .redisOff, .valkeyOff, .memcached, .null]
    }

    /// Each server once.
    private var servers: [Contender] {
        var all = writers
        for contender in readers where !all.contains(where: { $0.name == contender.name }) { all.append(contender) }
        return all
    }

    /// GET is measured before SET, while the tables are as they were after filling.
    private func loads(valueBytes: Int) -> [(Load, [Contender])] {
        var result: [(Load, [Contender])] = []
        for clients in options.isQuick ? [50] : [50, 1] {
            for pipeline in [1, 16, 64] {
                let load = Load.get(valueBytes, clients: clients, pipeline: pipeline)
                result.append((load, readers))
                if clients > 1 { result.append((load.withFetch, [.larderEverySecond])) }
            }
        }
        for clients in options.isQuick ? [50] : [50, 1] {
            for pipeline in [1, 16, 64] {
                result.append((.set(valueBytes, clients: clients, pipeline: pipeline), writers))
            }
        }
        // Run these loads last, because some of them delete entries that GET reads.
        for pipeline in [1, 16] where valueBytes == 64 {
            for script in [BenchScript.countAndExpire, .compareAndExpire, .compareAndDelete] {
                result.append((.script(script, pipeline: pipeline), Contender.journaling))
            }
        }
        return result
    }

    func runRound(_ round: Int, into results: Results) throws(BenchError) {
        for valueBytes in options.isQuick ? [64] : [64, 1024] {
            try runRound(round, valueBytes: valueBytes, into: results)
        }
    }

    private func runRound(_ round: Int, valueBytes: Int, into results: Results) throws(BenchError) {
        var running: [String: RunningServer] = [:]
        defer { for server in running.values { server.stopAndRemove() } }
        for (position, contender) in servers.enumerated() {
            try results.attempt(contender.name) { () throws(BenchError) in
                let server = try RunningServer(contender, options, directory: try tree.makeDirectory("s\(position)"))
                try server.fill(count: Load.keyCount, valueBytes: valueBytes)
                try server.checkCount(Load.keyCount)
                if !contender.fillWords.isEmpty {
                    // Purge a tag, so that each read has to check whether its entry's tags were purged.
                    _ = try SocketClient(path: server.socket).ask(["PURGE", "TAG", "article:18"])
                }
                if contender.dialect == .resp {
                    for script in BenchScript.allCases {
                        let reply = try SocketClient(path: server.socket).ask(["SCRIPT", "LOAD", script.text])
                        guard reply == .bulk(Array(script.digest.utf8)) else {
                            throw BenchError("\(contender.name) answers SCRIPT LOAD with \(reply)")
                        }
                    }
                }
                running[contender.name] = server
                guard valueBytes == 64, contender.program != .null else { return }
                results.add(Self.spaceTable, contender.name, server.space)
            }
        }
        for (load, contenders) in loads(valueBytes: valueBytes) {
            Progress.note("  \(load.title)")
            for contender in contenders.rotated(by: round) {
                guard let server = running[contender.name] else { continue }
                try results.attempt("\(contender.name), \(load.title)") { () throws(BenchError) in
                    // In full runs, measure SET for longer, so that the run includes deferred work.
                    var load = load.lasting(options.secondsPerRun * (load.setPercent > 0 && !options.isQuick ? 2 : 1))
                    load.seed = UInt64(round + 1)
                    let row = load.readsWithFetch ? Self.fetchRow : contender.name
                    results.add(load.title, row, try server.measure(load))
                }
            }
        }
    }
}

extension Array {
    /// Returns the elements in a different order for every round, so that no server follows the same server in all
    /// rounds.
    func rotated(by round: Int) -> [Element] {
        guard !isEmpty else { return [] }
        let shift = round % count
        return Array(self[shift...] + self[..<shift])
    }
}
