import LarderPlatform
import LarderTestSupport
import Testing

/// A leaderboard: scores change all the time, and an index has their order.
@Suite struct LeaderboardTests {
    private static let players = 100_000
    /// The numbers of the threads that change scores, and of those that query.
    private static let (writers, readers) = (2, 2)

    /// The largest figures.
    private struct Most {
        var (hints, stale, diskBytes, residentBytes) = (0, 0, 0, 0)
    }

    /// Runs for some seconds. `make leaderboard SECONDS=3600` runs for an hour.
    @Test func theTopTenAreThoseThatWereAcknowledged() async throws {
        let seconds = TestSetting.rounds.number() ?? 5
        let seed = testSeed()
        try await onThread {
            let daemon = try DaemonProcess([
                "--policy", "never", "--memory", "64M", "--checkpoint", "4M", "--query-time-limit", "600s",
            ])
            let client = try daemon.connect()
            #expect(try client.call("INDEX CREATE top ON score DESC") == "+OK\r\n")
            var random = SeededGenerator(seed: seed)
            let board = Scoreboard((0..<Self.players).map { _ in Scoreboard.score(&random) })
            try Self.store(board.all, client)
            let isOver = Guarded(false)
            let problems = Recorder<String>()
            let (queries, writes) = (Guarded(0), Guarded(0))
            let threads = (0..<(Self.writers + Self.readers)).map { thread in
                WorkThread(name: "test-\(thread)") { [path = daemon.socketPath] in
                    do {
                        let client = try SocketClient(path)
                        var random = SeededGenerator(seed: seed &+ UInt64(thread))
                        while !isOver.value, problems.isEmpty {
                            if thread < Self.writers {
                                let changes = board.change(thread, of: Self.writers, &random)
                                try Self.store(changes, client)
                                board.acknowledge(changes)
                                writes.with { $0 += changes.count }
                            } else {
                                let view = board.view(thread)
                                let rows = try Self.top(client)
                                if let problem = board.problem(rows, since: view, thread) { problems.add(problem) }
                                queries.with { $0 += 1 }
                            }
                        }
                    } catch {
                        problems.add("\(error)")
                    }
                }
            }
            var most = Most()
            let start = MonotonicClock.milliseconds()
            var (elapsed, printed) = (0, 0)
            while problems.isEmpty, elapsed < seconds {
                WorkThread.sleep(nanoseconds: 1_000_000_000)
                try Self.measure(daemon, client, &most)
                elapsed = Int(MonotonicClock.milliseconds() - start) / 1000
                guard elapsed >= printed + 60 || elapsed >= seconds else { continue }
                print("\(elapsed) s: \(queries.value) queries, \(writes.value) writes, at most \(most)")
                printed = elapsed
            }
            isOver.value = true
            for thread in threads { thread.join() }
            #expect(problems.all == [])
            // Nothing changes now, so the result is exact.
            let last = board.view(0)
            #expect(try board.problem(Self.top(client), since: last, 0) == nil)
            let count = try client.call("QUERY COUNT WHERE score EXISTS")
            #expect(count == ":\(Self.players)\r\n")
            #expect(queries.value > 0 && writes.value > 0)
            // Hints of previous scores are removed a little later than they are made.
            #expect(most.hints <= 8 * Self.players)
            var left = Most()
            for _ in 0..<3_000 {
                left = Most()
                try Self.measure(daemon, client, &left)
                if left.hints <= 5 * Self.players / 2 { break }
                WorkThread.sleep(nanoseconds: 100_000_000)
            }
            #expect(left.hints <= 5 * Self.players / 2)
            #expect(most.diskBytes <= 256 << 20)
            if !TestSetting.sanitized.isSet { #expect(most.residentBytes <= 320 << 20) }
        }
    }

    private static func key(_ player: Int) -> String { "p:\(player)" }

    private static func store(_ changes: [(player: Int, score: Int)], _ client: SocketClient) throws {
        for start in stride(from: 0, to: changes.count, by: 500) {
            let part = changes[start..<min(start + 500, changes.count)]
            try client.send(
                part.flatMap { encodeRequest(["SET", key($0.player), "{\"name\":\"x\",\"score\":\($0.score)}"]) })
            for reply in try client.receive(part.count) where reply != Array("+OK\r\n".utf8) {
                throw SocketClient.Failure(description: String(decoding: reply, as: UTF8.self))
            }
        }
    }

    private static func top(_ client: SocketClient) throws -> [(player: Int, score: Int)] {
        let lines = try client.call("QUERY SORT score DESC LIMIT 10").split(separator: "\r\n")
        return try stride(from: 4, to: lines.count, by: 5).map { line in
            let digits = lines[line + 4].split(separator: ":").last?.dropLast()
            guard let player = Int(lines[line + 2].dropFirst(2)), let score = digits.flatMap({ Int($0) }) else {
                throw SocketClient.Failure(description: lines.joined(separator: " "))
            }
            return (player, score)
        }
    }

    private static func measure(_ daemon: DaemonProcess, _ client: SocketClient, _ most: inout Most) throws {
        let lines = try client.call("INDEX top").split(separator: "\r\n")
        func number(_ field: String) -> Int {
            lines.firstIndex { $0 == field }.flatMap { Int(lines[$0 + 1].dropFirst()) } ?? .max
        }
        most.hints = max(most.hints, number("entries"))
        most.stale = max(most.stale, number("stale"))
        most.diskBytes = max(most.diskBytes, FileSystem.space(daemon.larder))
        most.residentBytes = max(most.residentBytes, daemon.residentBytes ?? 0)
    }
}

/// The scores that were acknowledged, and those that were sent. Knows which results of a query are possible.
///
/// Thread-safe. `@unchecked Sendable`: the variables are guarded by the lock.
private final class Scoreboard: @unchecked Sendable {
    /// The possible scores of players when a query begins. Other players have at most ``low``.
    struct View {
        fileprivate let scores: [Int: [Int]]
        fileprivate let start: Int
    }

    private let lock = Lock()
    private var scores: [Int]
    private var sent: [Int: Int] = [:]
    /// The players with a score above ``low``, or that may have one.
    private var high: Set<Int>
    /// The latest changes that were sent.
    private var log: [(player: Int, score: Int)] = []
    /// The number of older changes.
    private var dropped = 0
    /// The positions in the log at which the last query of each thread began.
    private var starts: [Int: Int] = [:]

    /// A score that more than ten players exceed.
    private static let low = 990_000

    init(_ scores: [Int]) {
        self.scores = scores
        high = Set(scores.indices.filter { scores[$0] > Self.low })
    }

    static func score(_ random: inout SeededGenerator) -> Int { random.below(1_000_000) }

    var all: [(player: Int, score: Int)] { lock.withLock { scores.enumerated().map { ($0.offset, $0.element) } } }

    /// Chooses new scores for some players of a thread, more often for those with high scores.
    func change(_ thread: Int, of threads: Int, _ random: inout SeededGenerator) -> [(player: Int, score: Int)] {
        lock.withLock {
            var changes: [Int: Int] = [:]
            for _ in 0...random.below(16) {
                var player = random.below(scores.count)
                if random.oneIn(8), let other = high.randomElement(using: &random) { player = other }
                player -= player % threads - thread
                let isHigh = random.oneIn(16)
                changes[player] = isHigh ? Self.low + 1 + random.below(1_000_000 - Self.low) : Self.score(&random)
            }
            for (player, score) in changes {
                sent[player] = score
                log.append((player, score))
                if score > Self.low { high.insert(player) }
            }
            return changes.map { ($0.key, $0.value) }
        }
    }

    func acknowledge(_ changes: [(player: Int, score: Int)]) {
        lock.withLock {
            for (player, score) in changes {
                scores[player] = score
                sent[player] = nil
                if score <= Self.low { high.remove(player) }
            }
        }
    }

    /// Notes the possible scores before a query.
    func view(_ thread: Int) -> View {
        lock.withLock {
            starts[thread] = dropped + log.count
            if log.count > 100_000, let first = starts.values.min() {
                log.removeFirst(first - dropped)
                dropped = first
            }
            let possible = high.map { ($0, [scores[$0]] + (sent[$0].map { [$0] } ?? [])) }
            return View(scores: Dictionary(uniqueKeysWithValues: possible), start: dropped + log.count)
        }
    }

    /// Why the rows of a query are impossible; nil if they are possible.
    func problem(_ rows: [(player: Int, score: Int)], since view: View, _ thread: Int) -> String? {
        var possible = view.scores
        for (player, score) in lock.withLock({ Array(log[(view.start - dropped)...]) }) {
            possible[player, default: []].append(score)
        }
        let text = rows.map { "\($0.player): \($0.score)" }.joined(separator: ", ")
        guard rows.count == 10, Set(rows.map(\.player)).count == 10, let tenth = rows.last, tenth.score > Self.low
        else { return "not ten rows: \(text)" }
        for (left, right) in zip(rows, rows.dropFirst())
        where left.score < right.score || left.score == right.score && "\(left.player)" > "\(right.player)" {
            return "not in order: \(text)"
        }
        for row in rows where !(possible[row.player] ?? []).contains(row.score) {
            return "\(row.player) had not \(row.score) but \(possible[row.player] ?? [])"
        }
        let found = Set(rows.map(\.player))
        for (player, before) in view.scores where !found.contains(player) {
            let least = (possible[player] ?? before).min() ?? 0
            if least > tenth.score { return "\(player) had \(possible[player] ?? []), but is missing: \(text)" }
        }
        return nil
    }
}
