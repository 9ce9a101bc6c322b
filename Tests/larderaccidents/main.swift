import LarderCrashMachine
import LarderEngine
import LarderPlatform
import LarderTestSupport

// `make crash` and `make power`: larderaccidents crash|power POINTS. LARDER_SEED, LARDER_POINT and LARDER_VERBOSE
// repeat a finding, LARDER_MODEL selects a model of power failures, LARDER_DURABILITY a level.

let words = CommandLine.arguments
guard words.count == 3, let mode = Machine.Mode(rawValue: words[1]), let points = Int(words[2]) else {
    print("usage: \(words[0]) crash|power POINTS")
    exit(64)
}
var machine = Machine(mode)
machine.onlyPoint = TestSetting.point.number()
machine.hasFaults = TestSetting.faulty.number().map { $0 != 0 }
if let model = TestSetting.model.text.flatMap(RecordedDisk.Accident.init) {
    machine.accidents = [model]
}
machine.durability = TestSetting.durability.text.flatMap(Durability.init(rawValue:))
machine.isVerbose = TestSetting.verbose.isSet
machine.hasSteadyClock = TestSetting.steadyClock.isSet
if let count = TestSetting.pointsPerRun.number() { machine.pointsPerRun = count }
var notified = 0
let report = machine.run(points: points, seed: testSeed(mode.rawValue)) { report in
    for finding in report.findings[notified...] { print(finding) }
    notified = report.findings.count
    if report.runs % 20 == 0 { print(report.text) }
    fflush(nil)
}
print("\(mode.rawValue): \(report.text)")
exit(report.findings.isEmpty ? 0 : 1)
