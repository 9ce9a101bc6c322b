import LarderPlatform
import LarderRESP

/// JSON documents with indexes: the costs of storing them, and queries, compared with SQLite.
final class DocumentsSuite: Suite {
    static let larder = "Larder, in the library"
    static let daemon = Contender.larderEverySecond
    static let sqlite = "SQLite, indexes on expressions"
    static let firstTable = "Documents: first query after 100,000 writes"
    static let liveTable = "Documents: stored one by one, with live queries"
    static let deliveryTable = "Documents: from the call that stores one to the reader of a live query"
    static let liveCounts = [0, 1, 1_000]

    private static let groupCount = 100

    private let options: BenchOptions
    private let tree: TemporaryTree
    private let documents: Documents

    init(_ options: BenchOptions, _ tree: TemporaryTree, count: Int = 200_000) {
        self.options = options
        self.tree = tree
        documents = Documents(count: count)
    }

    static func storeTable(_ indexes: Int) -> String {
        "Documents: stored in groups of 100, "
            + (indexes == 0 ? "no index" : indexes == 1 ? "1 index" : "\(indexes) indexes")
    }

    func runRound(_ round: Int, into results: Results) throws(BenchError) {
        let stores: [(name: String, make: (String, Documents) throws -> any DocumentStore)] = [
            (Self.larder, { try LarderDocuments($0, $1) }), (Self.sqlite, { try SQLiteDocuments($0, $1) }),
        ]
        for (name, make) in stores.rotated(by: round) {
            for indexes in [0, 1, DocumentIndex.allCases.count] {
                Progress.note("  documents, \(indexes) indexes, \(name)")
                try results.attempt("\(name), \(indexes) indexes") { () throws(BenchError) in
                    let directory = try tree.makeDirectory("documents")
                    defer { TemporaryTree.remove(directory) }
                    do {
                        try measure(name, indexes, directory, make, into: results)
                    } catch {
                        throw BenchError("\(error)")
                    }
                }
            }
        }
        for count in Self.liveCounts.rotated(by: round) {
            Progress.note("  documents, \(Self.liveRow(count))")
            try results.attempt(Self.liveRow(count)) { () throws(BenchError) in
                let directory = try tree.makeDirectory("documents")
                defer { TemporaryTree.remove(directory) }
                do { try measureLive(count, directory, into: results) } catch { throw BenchError("\(error)") }
            }
        }
        Progress.note("  documents, \(Self.daemon.name)")
        try results.attempt("documents", Self.daemon, options, tree) { (server) throws(BenchError) in
            try measure(server, into: results)
        }
    }

    /// Stores the documents, and queries them if there are all indexes.
    private func measure(
        _ name: String, _ indexes: Int, _ directory: String, _ make: (String, Documents) throws -> any DocumentStore,
        into results: Results
    ) throws {
        var store = try make(directory, documents)
        for index in DocumentIndex.allCases.prefix(indexes) { try store.create(index) }
        let figures = try Stopwatch.measure(operations: documents.count, writeOut: store.close) {
            try put(0..<documents.count, into: store)
        }
        results.add(Self.storeTable(indexes), name, figures)
        guard indexes == DocumentIndex.allCases.count else { return }
        // All entries are on the disk now.
        store = try make(directory, documents)
        for query in DocumentQuery.allCases {
            // The first ones read the blocks into LevelDB's cache.
            for number in 0..<query.repetitions(isQuick: true) { try ask(store, query, number) }
            let count = query.repetitions(isQuick: options.isQuick)
            let figures = try Stopwatch.measure(operations: count * query.operations(documents)) {
                for number in 0..<count { try ask(store, query, number) }
            }
            results.add(query.table, name, figures)
        }
        try put(0..<min(100_000, documents.count), into: store)
        let begin = Clocks.monotonic()
        try ask(store, .equality, 1)
        results.add(Self.firstTable, name, [.command: (Clocks.monotonic() - begin) * 1000])
        try store.close()
    }

    static func liveRow(_ count: Int) -> String { "\(larder), \(count) live queries" }

    /// Stores documents while live queries follow those of some authors, each of another one.
    private func measureLive(_ count: Int, _ directory: String, into results: Results) throws {
        let store = try LarderDocuments(directory, documents)
        let stored = Latch()
        let handles = try (0..<count).map { try store.follow($0) { stored.set() } }
        let puts = min(documents.count, options.isQuick ? 20_000 : 100_000)
        let figures = try Stopwatch.measure(operations: puts) {
            for index in 0..<puts { try store.put(index..<(index + 1)) }
        }
        results.add(Self.liveTable, Self.liveRow(count), figures)
        if count == 1, let index = documents.first(of: 0) {
            var total = 0.0
            let rounds = 200
            for round in 1...rounds {
                Clocks.sleep(0.002)
                let delivered = Latch()
                let handle = try store.follow(0) { delivered.set() }
                let begin = Clocks.monotonic()
                // A document that is stored again without a change is not reported.
                try store.put(index..<(index + 1), followedBy: String(repeating: " ", count: round % 2))
                guard delivered.wait(milliseconds: 1000) else { throw BenchError("a change was not delivered") }
                total += Clocks.monotonic() - begin
                handle.stop()
            }
            results.add(Self.deliveryTable, Self.larder, [.command: total / Double(rounds) * 1000])
        }
        for handle in handles { handle.stop() }
        try store.close()
    }

    private func put(_ indices: Range<Int>, into store: any DocumentStore) throws {
        for start in stride(from: 0, to: indices.upperBound, by: Self.groupCount) {
            try Interruption.check()
            try store.put(start..<min(start + Self.groupCount, indices.upperBound))
        }
    }

    private func ask(_ store: any DocumentStore, _ query: DocumentQuery, _ number: Int) throws {
        let found = try store.answer(query, number)
        guard found == query.expected(documents) else { throw BenchError("\(query.rawValue): \(found)") }
    }

    // MARK: Over the socket

    private func measure(_ server: RunningServer, into results: Results) throws(BenchError) {
        let client = try SocketClient(path: server.socket)
        for index in DocumentIndex.allCases {
            _ = try ok(client, ["INDEX", "CREATE", index.rawValue, "ON", index.rawValue])
        }
        for start in stride(from: 0, to: documents.count, by: Self.groupCount) {
            try Interruption.check()
            let indices = start..<min(start + Self.groupCount, documents.count)
            _ = try ok(client, ["MSET"] + indices.flatMap { [Keys.text($0), documents.text($0)] })
        }
        try server.writeOut()
        for query in DocumentQuery.allCases {
            for number in 0..<query.repetitions(isQuick: true) { try ask(client, query, number) }
            let count = query.repetitions(isQuick: options.isQuick)
            let usage = try server.usage { () throws(BenchError) in
                for number in 0..<count { try ask(client, query, number) }
            }.1
            results.add(
                query.table, "\(Self.daemon.name), over the socket",
                usage.figures(operations: count * query.operations(documents)))
        }
    }

    private func ok(_ client: SocketClient, _ words: [String]) throws(BenchError) -> RESPValue {
        let answer = try client.ask(words)
        if case .error(let text) = answer { throw BenchError("\(words[0]): \(text)") }
        return answer
    }

    private func ask(_ client: SocketClient, _ query: DocumentQuery, _ number: Int) throws(BenchError) {
        let answer = try ok(client, ["QUERY"] + query.words(number, documents))
        let found: Int? =
            switch answer {
            case .integer(let count): Int(count)
            default: answer.elements?.last?.elements?.count
            }
        guard found == query.expected(documents) else {
            throw BenchError("\(query.rawValue): \(found.map(String.init) ?? "\(answer)")")
        }
    }
}
