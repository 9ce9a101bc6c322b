import LarderCrashMachine
import LarderPlatform
import LarderTestSupport
import Testing

/// Accidents at many points of recorded daemons. `make crash` and `make power` try many more.
@Suite(.serialized, .enabled(if: FaultLibrary.isAvailable)) struct AccidentTests {
    /// `LARDER_ACCIDENTS`, a thousand if it is not set.
    private static var points: Int { TestSetting.accidents.number() ?? 1000 }

    @Test func acknowledgedWritesSurviveSIGKILLAtAnyPoint() {
        var machine = Machine(.crash)
        machine.hasFaults = false
        machine.hasSteadyClock = true
        let report = machine.run(points: Self.points, seed: testSeed())
        print("crash: \(report.text)")
        #expect(report.findings.isEmpty, "\(report.findings.joined(separator: "\n"))")
    }

    /// A journal whose end was lost: holes in segments that a rewrite was about to remove, and the header of the first
    /// segment that a checkpoint left, cost whole databases.
    @Test func durableWritesSurviveAPowerFailureWithOrderedMetadata() {
        var machine = Machine(.power)
        machine.accidents = [.orderedPowerCut]
        machine.hasSteadyClock = true
        let report = machine.run(points: Self.points, seed: testSeed())
        print("power: \(report.text)")
        #expect(report.findings.isEmpty, "\(report.findings.joined(separator: "\n"))")
    }

    /// As POSIX allows: a name keeps its old place until its directory is synced, whatever else was synced.
    @Test func durableWritesSurviveAPowerFailureWithUnorderedMetadata() {
        var machine = Machine(.power)
        machine.accidents = [.strictPowerCut]
        machine.hasSteadyClock = true
        let report = machine.run(points: Self.points, seed: testSeed())
        print("strict: \(report.text)")
        #expect(report.findings.isEmpty, "\(report.findings.joined(separator: "\n"))")
    }

    /// A process that was killed had renamed POINTER and not synced its directory: the policy that the next one shows could be
    /// undone by a power cut.
    @Test func aPolicyThatWasShownAfterAKillStays() throws {
        let place = try TemporaryDirectory(inMemory: true)
        let faults = try FaultControl(in: place, traceBytes: 64 << 20)
        do {
            let daemon = try DaemonProcess(in: place, faults: faults)
            let client = try daemon.connect()
            #expect(try client.call("SELECT books") == "+OK\r\n")
            #expect(try client.call("SET k v") == "+OK\r\n")
            var rule = FaultControl.Rule.killing(.rename, at: 1, after: true)
            rule.path = "books/POINTER"
            faults.arm(rule)
            #expect(throws: (any Error).self) { try client.call("POLICY high") }
            #expect(try daemon.process.waitForExit() == .killed(signal: SIGKILL))
            faults.disarm()
        }
        let daemon = try DaemonProcess(in: place, faults: faults)
        let client = try daemon.connect()
        #expect(try client.call("SELECT books") == "+OK\r\n")
        #expect(try client.call("POLICY").contains("high"))
        let trace = FileTrace(faults.trace)
        let records = trace.records()
        try #require(faults.isTraceComplete)
        daemon.kill()
        var disk = RecordedDisk(trace, records)
        disk.advance(to: records.count)
        var random = SeededGenerator(seed: 1)
        for _ in 0..<100 {
            let image = disk.image(after: .strictPowerCut, using: &random)
            let pointer = try #require(image.files.first { $0.path == "books/POINTER" })
            try #require(String(decoding: pointer.bytes, as: UTF8.self).contains("policy high"))
        }
    }
}
