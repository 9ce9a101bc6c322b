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
}
