import CrashMachine
import TestSupport
import Testing

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#else
    import Darwin
#endif

/// Accidents at many points of recorded daemons. `make crash` and `make power` try many more.
@Suite(.serialized, .enabled(if: FaultLibrary.isAvailable)) struct AccidentTests {
    /// `LARDER_ACCIDENTS`, a thousand if it is not set.
    private static var points: Int { getenv("LARDER_ACCIDENTS").flatMap { Int(String(cString: $0)) } ?? 1000 }

    @Test func whatWasAcknowledgedSurvivesSIGKILLAtAnyPoint() {
        var machine = Machine(.crash)
        machine.hasFaults = false
        machine.hasSteadyClock = true
        let report = machine.run(points: Self.points, seed: testSeed())
        print("crash: \(report.text)")
        #expect(report.findings.isEmpty, "\(report.findings.joined(separator: "\n"))")
    }

    /// A journal whose end was lost: holes in segments that a rewrite was about to remove, and the header of the first
    /// segment that a checkpoint left, cost whole databases.
    @Test func whatWasPromisedSurvivesAPowerCutWithOrderedMetadata() {
        var machine = Machine(.power)
        machine.accidents = [.orderedPowerCut]
        machine.hasSteadyClock = true
        let report = machine.run(points: Self.points, seed: testSeed())
        print("power: \(report.text)")
        #expect(report.findings.isEmpty, "\(report.findings.joined(separator: "\n"))")
    }
}
