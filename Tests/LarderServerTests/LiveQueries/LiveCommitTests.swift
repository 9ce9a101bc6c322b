import LarderPlatform
import LarderQueries
import LarderTestSupport
import Testing

@testable import LarderEngine
@testable import LarderQuerying
@testable import LarderServer

/// Live queries never show a part of a commit, however fast entries change.
@Suite(.timeLimit(.minutes(2))) struct LiveCommitTests {
    /// A reader that checks its rows after each message. Thread-safe.
    private final class Checker: Sendable {
        let reader: LiveReader
        /// The number of successive keys that are always changed together, and get the same text.
        let size: Int
        private let found = Locked((count: 0, wrong: [String]()))

        init(_ words: [String], size: Int) { (reader, self.size) = (LiveReader(words), size) }

        var seen: (count: Int, wrong: [String]) { found.withLock { $0 } }

        func begin(_ queries: LiveQueries, in database: Database) throws -> LiveQueryHandle {
            let begun = try queries.begin(try reader.query(), in: database) { events in
                let isTaken = self.reader.take(events)
                self.check(self.reader.rows)
                return isTaken
            }
            reader.change { $0.rows = begun.rows }
            check(reader.rows)
            begun.handle.start()
            return begun.handle
        }

        private func check(_ rows: [LiveReader.Row]) {
            let groups = Dictionary(grouping: rows) { (Int($0.key.dropFirst()) ?? 0) / size }.values
            let isWhole = groups.allSatisfy { $0.count == size && Set($0.map(\.text)).count == 1 }
            found.withLock { found in
                found.count += 1
                if !isWhole { found.wrong.append("\(rows.map { "\($0.key) \($0.text ?? "")" })") }
            }
        }
    }

    private let server: SocketlessServer
    private let database: Database
    private static let keys = (20..<40).map { Key(Array("k\($0)".utf8)) }

    init() throws {
        server = try SocketlessServer(policy: .never)
        database = try server.engine.database("0")
    }

    /// Stores a text under keys in one commit unit.
    private static func store(
        _ text: String, _ keys: some Sequence<Key>, tags: Tags? = nil, in database: Database
    ) throws -> CommitTicket {
        let bytes = Array(text.utf8)
        var ticket: CommitTicket?
        // Without a ticket, the files are not open: a purge may have replaced them.
        while ticket == nil {
            try database.prepare(forWriting: true)
            ticket = try database.perform(
                Array(keys), .none, .mayBlock, now: database.now(), needsFiles: true
            ) { update in
                for index in 0..<update.count { bytes.withUnsafeBytes { update.put(index, payload: $0, tags: tags) } }
            }
        }
        return try #require(ticket)
    }

    /// Runs threads until each has ended, and begins queries all the time.
    private func check(size: Int, _ threads: [@Sendable () throws -> Void]) async throws {
        let words = [["WHERE", "v", ">=", "0"], ["KEYS", "WHERE", "on", "=", "true"], ["WHERE", "on", "=", "true"]]
        let checkers = words.map { Checker($0, size: size) }
        let handles = try checkers.map { try $0.begin(server.state.live, in: database) }
        let ended = Locked(0)
        for body in threads {
            WorkThread(name: "writer") {
                do { try body() } catch { Issue.record(error) }
                ended.withLock { $0 += 1 }
            }.detach()
        }
        while ended.withLock({ $0 }) < threads.count {
            for words in words {
                let new = Checker(words, size: size)
                try new.begin(server.state.live, in: database).stop()
                #expect(new.seen.wrong.isEmpty)
            }
            await Task.yield()
        }
        for checker in checkers {
            try await eventually { try checker.reader.rows == checker.reader.fresh(database) }
            let (count, wrong) = checker.seen
            #expect(wrong.isEmpty, "\(wrong.count) of \(count), such as \(wrong.first ?? "")")
            #expect(count > 10 && checker.reader.now.problems.isEmpty && checker.reader.now.ended == nil)
        }
        withExtendedLifetime(handles) {}
    }

    @Test("entries that are stored together appear together", arguments: [20, 5, 2], [false, true])
    func entriesStoredTogetherAppearTogether(_ size: Int, isIndexed: Bool) async throws {
        if isIndexed { #expect(server.connect()("INDEX CREATE i ON on v") == Wire.ok) }
        let seed = testSeed()
        _ = try Self.store("{\"v\":0}", Self.keys, in: database)
        let writers = (0..<2).map { number in
            { @Sendable [database] in
                var random = SeededGenerator(seed: seed &+ UInt64(number))
                for round in 0..<3_000 {
                    let first = random.below(20 / size) * size
                    let text = "{\"v\":\(round),\"on\":\(random.below(4) > 0)}"
                    let ticket = try Self.store(text, Self.keys[first..<(first + size)], in: database)
                    if random.oneIn(8) { try database.pipeline.wait(for: ticket) }
                }
            }
        }
        try await check(size: size, writers)
    }

    @Test func exchangedDatabasesAppearAtOnce() async throws {
        let other = try server.engine.database("1")
        for (number, database) in [database, other].enumerated() {
            let client = server.connect()
            _ = client("SELECT \(database.name)")
            _ = client(["MSET"] + (20..<40).flatMap { ["k\($0)", "{\"v\":\(number),\"on\":\(number == 0)}"] })
        }
        try await check(
            size: 20,
            [
                { @Sendable [database, engine = server.engine] in
                    for _ in 0..<500 { try engine.exchange(database, other, entriesMax: 100, bytesMax: 1 << 20) }
                }
            ])
    }

    @Test(arguments: [PurgeSelection.tags([[1]], soft: false), .all(counting: false)])
    func purgedEntriesDisappearTogether(_ purge: PurgeSelection) async throws {
        let tags = try Tags(checking: [[1]])
        try await check(
            size: 20,
            (0..<2).map { number in
                { @Sendable [database] in
                    for round in 0..<(number == 0 ? 1_000 : 100) {
                        if number == 0 {
                            let ticket = try Self.store(
                                "{\"v\":\(round),\"on\":true}", Self.keys, tags: tags, in: database)
                            try database.pipeline.wait(for: ticket)
                        } else {
                            _ = try database.purge(purge)
                        }
                    }
                }
            })
    }
}
