import LarderPlatform
import LarderTestSupport
import Testing

@testable import LarderClient

/// `larderctl replicate --continuous` under SIGKILL. Whichever process is killed, and when, both larders become equal,
/// and no removed entry comes back.
@Suite(.timeLimit(.minutes(10))) struct ReplicateKillTests {
    enum Victim: CaseIterable { case source, target, follower, everybody }

    /// The number of rounds: `LARDER_ROUNDS`, or 4 if that is not set.
    private static var rounds: Int { TestSetting.rounds.number() ?? 4 }

    /// Writes until its daemon has exited or the writer is stopped.
    private final class Writer: Sendable {
        private let progress = Guarded(0)
        private let thread: WorkThread

        init(_ path: String, _ generator: SeededGenerator, from first: Int, enough: Int, _ reached: Gate) {
            let progress = progress
            thread = WorkThread(name: "writer") {
                var random = generator
                // The loop ends when the daemon exits, because the calls then fail.
                while let client = try? SocketClient(path),
                    (try? FollowedLarder.act(client, &random, first + progress.value)) != nil
                {
                    let count = progress.with { (count: inout Int) -> Int in
                        if count >= 0 { count += 1 }
                        return count
                    }
                    if count == enough { reached.open() }
                    if count < 0 { break }
                }
                reached.open()
            }
        }

        func end() {
            progress.value = -1
            thread.join()
        }
    }

    /// Starts a follower, and waits for its first output. If an error occurs before that, the follower terminates.
    private func start(_ source: FollowedLarder, _ target: FollowedLarder) throws -> ChildProcess {
        let follower = try ChildProcess(
            try DaemonProcess.program("larderctl"),
            ["replicate", "--continuous", "--json", "--database", "0", source.path, target.path])
        try follower.waitForOutput { $0.contains("\n") }
        return follower
    }

    /// Waits until the target equals the source, and compares them again after each change of the target.
    private func waitUntilSame(_ source: FollowedLarder, _ target: FollowedLarder, _ when: String) throws {
        let client = try BlockingLarderClient(socketPath: target.path, timeoutMilliseconds: 90_000)
        var position = "$"
        var silences = 0
        while true {
            let reply = try FeedReply(
                try client.command(["CHANGES", "SINCE", position] + (position == "$" ? [] : ["BLOCK", "20000"])))
            let (first, second) = (Set(try source.contents()), Set(try target.contents()))
            if first == second { return }
            if position != "$", reply.reason == nil, reply.items.isEmpty { silences += 1 }
            guard silences < 3 else {
                Issue.record("\(when): \(first.subtracting(second).sorted()), \(second.subtracting(first).sorted())")
                return
            }
            position = reply.position
        }
    }

    private func fallbacks(_ source: FollowedLarder) throws -> Int {
        let lines = try source.client().serverInfo(section: "larder").split(whereSeparator: \.isNewline)
        let line = try #require(lines.first { $0.hasPrefix("follower_fallbacks:") })
        return Int(line.split(separator: ":")[1]) ?? -1
    }

    @Test(arguments: Victim.allCases) func replicatedLardersAreEqualAfterKills(_ victim: Victim) throws {
        let seed = testSeed("\(victim)")
        var random = SeededGenerator(seed: seed)
        // Make frequent checkpoints, each of which removes the journal.
        let source = try FollowedLarder(["--checkpoint", "8K"])
        let target = try FollowedLarder()
        var follower = try start(source, target)
        defer { follower.killNow() }
        var (written, passes) = (0, 0)
        for round in 0..<Self.rounds {
            let when = "seed \(seed), \(victim), round \(round)"
            let reached = Gate(isClosed: true)
            let writer = Writer(
                source.path, SeededGenerator(seed: random.next()), from: written, enough: 5 + random.below(120), reached
            )
            reached.pass()
            // The follower can start only while both daemons are running, so restart the daemons before the follower.
            let isFollowerKilled = victim == .follower || victim == .everybody && random.oneIn(2)
            if isFollowerKilled { follower.killNow() }
            if victim == .target || victim == .everybody && random.oneIn(2) { try target.restart(kills: true) }
            if victim == .source || victim == .everybody { try source.restart(kills: true) }
            if isFollowerKilled { follower = try start(source, target) }
            writer.end()
            written += 1000
            for number in 0..<random.below(10) { try source.act(&random, written - 1 - number) }
            try waitUntilSame(source, target, when)
            passes += try victim == .target || victim == .follower ? 0 : fallbacks(source)
            #expect(!follower.hasEnded(), "\(when): \(follower.errors)")
        }
        print("replicate, \(victim) killed \(Self.rounds) times: \(passes) full passes, seed \(seed)")
        // Only a kill during a purge or during the deletion of a database needs another pass.
        #expect(passes <= Self.rounds / 2 + 1)
    }
}
