import LarderPlatform
import LarderTestSupport
import Testing

/// Tests that compare random histories of operations with a simple model.
@Suite struct ModelTests {
    /// To run overnight: `LARDER_ROUNDS=100000 LARDER_SEED=… swift test --filter ModelTests`.
    @Test func randomHistoriesAgreeWithADictionary() throws {
        let rounds = TestSetting.rounds.number() ?? 60
        let base = testSeed()
        for round in 0..<rounds {
            let seed = base &+ UInt64(truncatingIfNeeded: round)
            let run = try ModelRun(seed: seed)
            do {
                try run.run(steps: 150)
            } catch {
                let trail = run.trail.suffix(200).joined(separator: "\n  ")
                Issue.record("LARDER_SEED=\(seed) LARDER_ROUNDS=1: \(error)\n  \(trail)")
                return
            }
        }
    }
}
