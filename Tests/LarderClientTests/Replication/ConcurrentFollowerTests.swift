import LarderPlatform
import LarderTestSupport
import Synchronization
import Testing

@testable import LarderClient

/// Tests of two larders that follow each other while clients of both write and purge.
@Suite(.timeLimit(.minutes(10))) struct ConcurrentFollowerTests {
    /// For each test case, the purges that a writer makes between its changes of single keys.
    private static let purges: [[[String]]] = [
        [["PURGE"]], [["FLUSHDB"]], [["FLUSHALL"]], [["PURGE", "PREFIX", "a"]], [["PURGE", "TAG", "t0", "t1"]],
        [["PURGE"], ["FLUSHDB"], ["FLUSHALL"], ["PURGE", "PREFIX", "a"], ["PURGE", "TAG", "t2"]],
    ]

    @Test("two larders are equal after concurrent writes and purges", arguments: purges)
    func equalAfterConcurrentWritesAndPurges(_ purges: [[String]]) throws {
        let seed = testSeed()
        let larders = [try FollowedLarder(), try FollowedLarder()]
        for way in 0..<2 { try Self.follow(larders[way], larders[1 - way]) }
        for round in 0..<(TestSetting.rounds.number() ?? 6) {
            let isOver = Atomic<Bool>(false)
            let errors = Recorder<String>()
            let followers = (0..<2).map { way in
                let (from, to) = (larders[way].path, larders[1 - way].path)
                return WorkThread(name: "follower") {
                    Self.run(errors) {
                        let follower = try Self.follower(from, to)
                        while !isOver.load(ordering: .acquiring) { try follower.step(waitMilliseconds: 5) }
                    }
                }
            }
            let writers = (0..<4).map { writer in
                let path = larders[writer % 2].path
                let seed = seed &+ UInt64(round * 4 + writer)
                return WorkThread(name: "writer") {
                    Self.run(errors) { try Self.write(path, seed, writer == 0 ? purges : []) }
                }
            }
            for writer in writers { writer.join() }
            isOver.store(true, ordering: .releasing)
            for follower in followers { follower.join() }
            #expect(errors.all.isEmpty)
            for _ in 0..<3 { for way in 0..<2 { try Self.follow(larders[way], larders[1 - way]) } }
            let (one, two) = (Set(try larders[0].contents()), Set(try larders[1].contents()))
            #expect(one == two, "seed \(seed), round \(round): \(one.symmetricDifference(two).sorted())")
        }
    }

    private static func run(_ errors: Recorder<String>, _ body: () throws -> Void) {
        do { try body() } catch { errors.add("\(error)") }
    }

    /// Writes to a small set of keys, so that both sides change the same keys, and purges now and then.
    private static func write(_ path: String, _ seed: UInt64, _ purges: [[String]]) throws {
        var random = SeededGenerator(seed: seed)
        let client = try BlockingLarderClient(socketPath: path)
        for number in 0..<150 {
            let key = ["a", "b"][random.below(2)] + "\(random.below(8))"
            var words = ["SET", key, "\(seed)-\(number)"]
            switch random.below(8) {
            case 0: words = ["DEL", key]
            case 1: words = ["APPEND", key, "+"]
            case 2: words += ["TAGS", "1", "t\(random.below(3))"]
            case 3: words += ["EX", "1000"]
            default: break
            }
            let reply = try client.command(words)
            if let text = reply.errorMessage { throw LarderClientError.server(text, operation: words[0]) }
            if !purges.isEmpty, random.oneIn(15) {
                let reply = try client.command(purges[random.below(purges.count)])
                if let text = reply.errorMessage { throw LarderClientError.server(text, operation: "PURGE") }
            }
        }
    }

    private static func follower(_ from: String, _ to: String) throws -> LarderFollower {
        var options = ReplicationOptions()
        (options.joins, options.batchCount) = (true, 20)
        return try LarderFollower(
            from: try BlockingLarderClient(socketPath: from), to: try BlockingLarderClient(socketPath: to), options)
    }

    /// Follows until the target has all changes of the source.
    private static func follow(_ from: FollowedLarder, _ to: FollowedLarder) throws {
        let follower = try follower(from.path, to.path)
        var steps = 0
        while try follower.step() != .idle {
            steps += 1
            try #require(steps < 10_000, "following does not end")
        }
    }
}
