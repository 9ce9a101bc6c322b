import LarderEngine
import LarderTestSupport
import Testing

@testable import LarderServer

/// Tests of random writes that wait for an origin. The origin fails, replies late and recovers, and the server may
/// restart between any two steps. Each read returns the last acknowledged write. In the end, the origin has each key's
/// last write.
@Suite struct OutboxModelTests {
    private struct Difference: Error, CustomStringConvertible { let description: String }

    private final class Run {
        private static let keys = ["a", "b", "c", "d"]
        private var fixture: OriginFixture
        private var random: SeededGenerator
        /// The last acknowledged write of each key; an inner nil is a removal.
        private var written: [String: String?] = [:]
        private var valueCount = 0
        private(set) var trail: [String] = []

        init(seed: UInt64) throws {
            random = SeededGenerator(seed: seed)
            fixture = try OriginFixture("BEHIND")
        }

        func run(steps: Int) throws {
            for _ in 0..<steps {
                try step()
                try check(Self.keys[random.below(Self.keys.count)])
            }
            fixture.origin.fail(nil)
            fixture.origin.loseAnswers(false)
            for key in Self.keys { fixture.origin.fail(key, nil) }
            for _ in 0..<20 where fixture.field("outbox") != 0 { fixture.deliverLater() }
            for (key, value) in written.sorted(by: { $0.key < $1.key }) where fixture.origin.value(key) != value {
                throw Difference(
                    description:
                        "the origin has \(fixture.origin.value(key) ?? "nothing") of \(key), not \(value ?? "nothing")")
            }
        }

        private func step() throws {
            switch random.below(20) {
            case 0..<8:
                let line = pickWrite()
                call(fixture.client, line)
            case 8..<11: deliver()
            case 11, 12:
                trail.append("deliver later")
                fixture.deliverLater()
            case 13: fixture.origin.fail(random.oneIn(2) ? .unreachable("gone") : nil)
            case 14: fixture.origin.loseAnswers(random.oneIn(3))
            case 15:
                fixture.origin.fail(Self.keys[random.below(4)], random.oneIn(2) ? .refused("ERR no") : nil)
            default:
                trail.append("restart")
                fixture = try OriginFixture(after: fixture)
            }
        }

        private func pickWrite() -> String {
            let key = Self.keys[random.below(Self.keys.count)]
            if random.oneIn(4) {
                written.updateValue(nil, forKey: key)
                return "DEL \(key)"
            }
            valueCount += 1
            written[key] = "\(valueCount)"
            guard random.oneIn(4) else { return "SET \(key) \(valueCount)" }
            let other = Self.keys[random.below(Self.keys.count)]
            written[other] = "\(valueCount)"
            return "MSET \(key) \(valueCount) \(other) \(valueCount)"
        }

        private func call(_ client: TestClient, _ line: String) {
            let reply = client(line)
            trail.append("\(line) → \(reply.debugDescription)")
        }

        /// Runs a round of deliveries. Sometimes a write is made during the first delivery.
        private func deliver() {
            if random.oneIn(2) {
                let (client, line) = (fixture.server.connect(), pickWrite())
                let hasRun = Guarded(false)
                let write = UncheckedCall { [self] in call(client, line) }
                fixture.origin.duringNextWrite {
                    hasRun.value = true
                    write.body()
                }
                trail.append("deliver, and meanwhile \(line)")
                fixture.deliver()
                fixture.origin.duringNextWrite {}
                if !hasRun.value { call(fixture.client, line) }
            } else {
                trail.append("deliver")
                fixture.deliver()
            }
        }

        /// A closure that uses a session. `@unchecked Sendable`: it only runs on the test's own thread.
        private struct UncheckedCall: @unchecked Sendable {
            let body: () -> Void
        }

        private func check(_ key: String) throws {
            // The values of keys that were never written here are those of the origin.
            guard let expected = written[key] else { return }
            let reply = fixture.client("GET \(key)")
            // After the write was delivered, a read may need the origin, which may not reply.
            if reply.hasPrefix("-ORIGIN") { return }
            guard reply == expected.map({ Wire.bulk($0) }) ?? Wire.null else {
                throw Difference(description: "GET \(key) is \(reply.debugDescription), not \(expected ?? "nothing")")
            }
        }
    }

    /// For a long run overnight: `LARDER_ROUNDS=100000 LARDER_SEED=… swift test --filter OutboxModelTests`.
    @Test func theLastWriteOfEachKeyReachesTheOrigin() throws {
        let base = testSeed()
        for round in 0..<(TestSetting.rounds.number() ?? 40) {
            let seed = base &+ UInt64(truncatingIfNeeded: round)
            let run = try Run(seed: seed)
            do {
                try run.run(steps: 60)
            } catch {
                let trail = run.trail.suffix(60).joined(separator: "\n  ")
                Issue.record("LARDER_SEED=\(seed) LARDER_ROUNDS=1: \(error)\n  \(trail)")
                return
            }
        }
    }
}
