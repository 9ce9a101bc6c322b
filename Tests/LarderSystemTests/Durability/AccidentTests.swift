import LarderCrashMachine
import LarderPlatform
import LarderTestSupport
import Testing

/// Simulates accidents at many points of recorded daemon runs. `make crash` and `make power` try many more.
@Suite(.serialized, .enabled(if: FaultLibrary.isAvailable)) struct AccidentTests {
    /// The value of `LARDER_ACCIDENTS`, or 1000 if it is not set.
    private static var points: Int { TestSetting.accidents.number() ?? 1000 }

    @Test func acknowledgedWritesSurviveSIGKILLAtAnyPoint() {
        var machine = Machine(.crash)
        machine.hasFaults = false
        machine.hasSteadyClock = true
        let report = machine.run(points: Self.points, seed: testSeed())
        print("crash: \(report.text)")
        #expect(report.findings.isEmpty, "\(report.findings.joined(separator: "\n"))")
    }

    /// Regression test: two kinds of damage made whole databases unreadable. A segment that a rewrite was about to
    /// remove had holes, or the first segment after a checkpoint had lost its header.
    @Test func durableWritesSurviveAPowerFailureWithOrderedMetadata() {
        var machine = Machine(.power)
        machine.accidents = [.orderedPowerCut]
        machine.hasSteadyClock = true
        let report = machine.run(points: Self.points, seed: testSeed())
        print("power: \(report.text)")
        #expect(report.findings.isEmpty, "\(report.findings.joined(separator: "\n"))")
    }

    /// Simulates the least that POSIX guarantees: a rename is undone unless its directory was synced, whatever else was
    /// synced.
    @Test func durableWritesSurviveAPowerFailureWithUnorderedMetadata() {
        var machine = Machine(.power)
        machine.accidents = [.strictPowerCut]
        machine.hasSteadyClock = true
        let report = machine.run(points: Self.points, seed: testSeed())
        print("strict: \(report.text)")
        #expect(report.findings.isEmpty, "\(report.findings.joined(separator: "\n"))")
    }

    /// Regression test: a killed process had renamed POINTER without syncing its directory. The next process reported
    /// the new policy, but a power failure could undo it.
    @Test("a policy reported after a SIGKILL survives a power failure")
    func aPolicyReportedAfterAKillSurvivesAPowerFailure() throws {
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
