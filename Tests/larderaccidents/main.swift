import CrashMachine
import TestSupport

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#else
    import Darwin
#endif

// `make crash` and `make power`: larderaccidents crash|power POINTS. LARDER_SEED, LARDER_POINT and LARDER_VERBOSE repeat one,
// LARDER_MODEL names one model of power cuts.

func number(_ name: String) -> Int? { getenv(name).flatMap { Int(String(cString: $0)) } }

let words = CommandLine.arguments
guard words.count == 3, let mode = Machine.Mode(rawValue: words[1]), let points = Int(words[2]) else {
    print("usage: \(words[0]) crash|power POINTS")
    exit(64)
}
var machine = Machine(mode)
machine.onlyPoint = number("LARDER_POINT")
machine.hasFaults = number("LARDER_FAULTY").map { $0 != 0 }
if let model = getenv("LARDER_MODEL").flatMap({ RecordedDisk.Accident(rawValue: String(cString: $0)) }) {
    machine.accidents = [model]
}
machine.isVerbose = number("LARDER_VERBOSE") != nil
machine.hasSteadyClock = number("LARDER_STEADY_CLOCK") != nil
if let count = number("LARDER_POINTS_PER_RUN") { machine.pointsPerRun = count }
var told = 0
let report = machine.run(points: points, seed: testSeed(mode.rawValue)) { report in
    for finding in report.findings[told...] { print(finding) }
    told = report.findings.count
    if report.runs % 20 == 0 { print(report.text) }
    fflush(nil)
}
print("\(mode.rawValue): \(report.text)")
exit(report.findings.isEmpty ? 0 : 1)
