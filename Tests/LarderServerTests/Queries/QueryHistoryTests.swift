import LarderTestSupport
import Testing

/// Random queries and live queries under overwrites, expiry, purges, tags, evictions, kills, clock steps, a full disk and
/// interrupted builds of indexes.
@Suite struct QueryHistoryTests {
    /// A round has a thousand queries. `make queries` runs a million of them.
    private static let queriesPerRound = 1000

    @Test func noQueryIsWrong() async throws {
        let rounds = TestSetting.rounds.number() ?? 2
        let base = testSeed()
        let counts = try await onThread {
            var counts: [QueryHistory.Event: Int] = [:]
            var (queries, number) = (0, UInt64(0))
            while queries < rounds * Self.queriesPerRound {
                let history = try QueryHistory(seed: base &+ number)
                do { try history.run(queries: Self.queriesPerRound / 4) } catch {
                    let trail = history.trail.suffix(120).joined(separator: "\n  ")
                    throw QueryHistory.Mismatch(
                        description: "LARDER_SEED=\(base &+ number) LARDER_ROUNDS=1: \(error)\n  \(trail)")
                }
                queries += history.queryCount
                counts.merge(history.counts) { $0 + $1 }
                number += 1
                if number % 400 == 0 { print("\(queries) queries: \(Self.text(counts))") }
            }
            print("\(queries) queries in \(number) histories, none wrong: \(Self.text(counts))")
            return counts
        }
        for event in QueryHistory.Event.allCases where rounds > 10 && event != .fullDisk {
            #expect(counts[event, default: 0] > 0, "\(event)")
        }
    }

    private static func text(_ counts: [QueryHistory.Event: Int]) -> String {
        QueryHistory.Event.allCases.map { "\($0) \(counts[$0, default: 0])" }.joined(separator: ", ")
    }
}
