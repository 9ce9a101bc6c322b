import LarderPlatform
import LarderTestSupport
import Testing

@testable import LarderEngine

/// Tests with recorded runs of engines: crashes at many points, truncated and damaged journals, and failing disks.
@Suite struct RecordedRunTests {
    /// Returns the value of `LARDER_ROUNDS`, or `standard` if it is not set.
    private static func rounds(_ standard: Int) -> Int {
        TestSetting.rounds.number() ?? standard
    }

    /// Makes the limits so small that checkpoints and new segments are frequent.
    private static func makeSmall(_ options: inout EngineOptions, _ random: inout SeededGenerator) {
        options.checkpointBytes = [1500, 6000, 1 << 20].randomElement(using: &random) ?? 1500
        options.journalSegmentBytes = [500, 3000, 1 << 20].randomElement(using: &random) ?? 500
        options.memoryBytes = [0, 3000, 16 << 20].randomElement(using: &random) ?? 0
        options.durability = Durability.allCases.randomElement(using: &random) ?? .os
        options.pinnedBytesMin = [1, 100, 1 << 20].randomElement(using: &random) ?? 1
        options.checkpointMilliseconds = [1000, 1_000_000].randomElement(using: &random) ?? 1000
    }

    @Test func aCrashAfterAnyNumberOfStepsLosesNothing() throws {
        let base = testSeed()
        for round in 0..<Self.rounds(6) {
            let seed = base &+ UInt64(truncatingIfNeeded: round)
            var random = SeededGenerator(seed: seed)
            let run = try RecordedRun(random) { Self.makeSmall(&$0, &random) }
            for stop in 0..<12 {
                try run.run(steps: 15)
                let crashCopy = try run.larder.crashCopy()
                // At some stops, the larder is opened and closed, or runs a checkpoint, before it is read.
                if stop % 3 == 0 { _ = try crashCopy.engine() }
                if stop % 3 == 0 { crashCopy.close() }
                if stop % 3 == 1 { _ = try crashCopy.engine().maintain() }
                let defect = try run.defectOfEnd(crashCopy)
                #expect(defect == nil, "LARDER_SEED=\(seed) LARDER_ROUNDS=1, stop \(stop)")
                crashCopy.close()
                let again = try run.defectOfEnd(crashCopy)
                #expect(again == nil, "LARDER_SEED=\(seed) LARDER_ROUNDS=1, stop \(stop), opened again")
                if defect != nil || again != nil { return }
            }
        }
    }

    @Test func aDamagedJournalRestoresAnEarlierStateOrIsReported() throws {
        let base = testSeed()
        var refused = 0
        var asides = 0
        for round in 0..<Self.rounds(5) {
            let seed = base &+ UInt64(truncatingIfNeeded: round)
            var random = SeededGenerator(seed: seed)
            let run = try RecordedRun(random) { options in
                Self.makeSmall(&options, &random)
                // In some runs, checkpoints are rare, so that there is a journal to damage.
                options.checkpointBytes = [6000, 1 << 20].randomElement(using: &random) ?? 6000
            }
            try run.run(steps: 150)
            let segments = run.larder.journalSegments
            guard !segments.isEmpty else { continue }
            attempts: for attempt in 0..<30 {
                let setsAside = attempt % 2 == 0
                let crashCopy = try run.larder.crashCopy { $0.onDamage = setsAside ? .salvage : .fail }
                let segment = crashCopy.journalSegments[Int.random(in: 0..<segments.count, using: &random)]
                let bytes = try Files.read(segment)
                let offset = Int.random(in: 0..<bytes.count, using: &random)
                switch attempt % 3 {
                case 0: try Files.truncate(segment, to: offset)
                case 1: try Files.flip(segment, at: offset)
                default:
                    // Removes the end of the last segment, as a power failure may do.
                    let last = crashCopy.journalSegments[segments.count - 1]
                    try Files.truncate(last, to: Int.random(in: 0...(try Files.read(last).count), using: &random))
                }
                // If the only segment has lost its header, the journal's end is unknown, so data in LevelDB cannot be
                // compared with it.
                let isHeadless =
                    try segments.count == 1
                    && Files.read(crashCopy.journalSegments[0]).count < JournalFormat.segmentHeaderBytes
                let what: Comment = "LARDER_SEED=\(seed) LARDER_ROUNDS=1, attempt \(attempt), \(segment) at \(offset)"
                do throws(LarderError) {
                    _ = try Engine.open(crashCopy.path, options: crashCopy.options, time: crashCopy.time).shutdown()
                } catch {
                    #expect(error.code == .damaged && !setsAside, what)
                    refused += 1
                    continue
                }
                if !crashCopy.setAside.isEmpty { asides += 1 }
                for opening in 0..<2 {
                    let defect: String?
                    do {
                        defect = try run.defect(crashCopy, together: !isHeadless)
                    } catch let error as LarderError where error.code == .damaged && !setsAside {
                        // If only a database is damaged and not the journal, opening the larder succeeds, and using the
                        // database fails.
                        refused += 1
                        continue attempts
                    }
                    #expect(defect == nil, "\(what), opening \(opening)")
                    if defect != nil { return }
                    crashCopy.close()
                }
                // The larder accepts writes again.
                try crashCopy.database("a").put("k0", "new")
                #expect(try crashCopy.database("a").value("k0") == "new", what)
            }
        }
        #expect(refused > 0 && asides > 0)
    }

    @Test func acknowledgedWritesSurviveAnyJournalFailure() throws {
        let base = testSeed()
        var refused = 0
        for round in 0..<Self.rounds(12) {
            let seed = base &+ UInt64(truncatingIfNeeded: round)
            var random = SeededGenerator(seed: seed)
            let faults = RandomFaults(random, oneIn: [4, 12, 60][round % 3])
            let run = try RecordedRun(random) { options in
                Self.makeSmall(&options, &random)
                options.journalFaults = faults.hook
            }
            for stop in 0..<6 {
                try run.run(steps: 25)
                let defect = try run.defectOfEnd(try run.larder.crashCopy())
                #expect(defect == nil, "LARDER_SEED=\(seed) LARDER_ROUNDS=\(round + 1), stop \(stop)")
                if defect != nil { return }
            }
            refused += run.refused
            // The disk works again: everything continues, and nothing more is refused.
            faults.stop()
            _ = try run.larder.engine().maintain()
            _ = try run.larder.engine().maintain()
            let before = run.refused
            try run.run(steps: 40)
            #expect(run.refused == before, "LARDER_SEED=\(seed) LARDER_ROUNDS=\(round + 1)")
            run.larder.close()
            let defect = try run.defectOfEnd(run.larder)
            #expect(defect == nil, "LARDER_SEED=\(seed) LARDER_ROUNDS=\(round + 1), the end")
            if defect != nil { return }
        }
        #expect(refused > 0)
    }

    /// Makes random system calls of the journal fail or write less than requested.
    private final class RandomFaults: Sendable {
        private let state: Guarded<(random: SeededGenerator, chances: Int)>

        init(_ random: SeededGenerator, oneIn chances: Int) { state = Guarded((random, chances)) }

        func stop() { state.with { $0.chances = 0 } }

        var hook: JournalFaults {
            JournalFaults { [self] call, _ in
                state.with { state in
                    guard state.chances > 0, state.random.oneIn(state.chances) else { return nil }
                    switch call {
                    case .write(let count): return state.random.oneIn(2) ? .fail(ENOSPC) : .shorten(count / 2)
                    // ftruncate does not fail here. It removes refused data from the file; if that fails, the data may
                    // exist after a crash.
                    case .ftruncate: return nil
                    // open does not fail: while the journal cannot be read, reads fail too, which FailingCommitTests
                    // checks.
                    case .open: return nil
                    default: return .fail(EIO)
                    }
                }
            }
        }
    }
}
