import LarderPlatform
import LarderTestSupport
import Testing

/// Tests of each effect of the preloaded library on a daemon.
@Suite(.enabled(if: FaultLibrary.isAvailable)) final class FaultLibraryTests {
    private let place: TemporaryDirectory
    private let faults: FaultControl
    /// Keeps the daemons until the test ends.
    private var daemons: [DaemonProcess] = []

    init() throws {
        place = try TemporaryDirectory(inMemory: true)
        faults = try FaultControl(in: place, traceBytes: 64 << 20)
    }

    private func daemon(_ options: [String] = []) throws -> DaemonProcess {
        let daemon = try DaemonProcess(options, in: place, faults: faults)
        daemons.append(daemon)
        return daemon
    }

    /// Waits for a condition: the daemon may report a fault a moment after the effect that the test has seen.
    private func wait(until isTrue: () -> Bool) { while !isTrue() { sched_yield() } }

    @Test func faultsCanMakeCallsFailOnceOrPermanently() throws {
        let daemon = try daemon()
        let client = try daemon.connect()
        #expect(faults.attached == UInt64(daemon.process.pid))
        #expect(try client.call("SET k 1") == "+OK\r\n")
        faults.arm(.failing(.write, ENOSPC, path: "JOURNAL", from: 2, count: 1))
        #expect(try client.call("SET k 2") == "+OK\r\n")
        #expect(try client.call("SET k 3").contains("No space left on device"))
        #expect(faults.lastHit.hasPrefix("write JOURNAL/0"))
        #expect(try client.call("SET k 4") == "+OK\r\n")
        #expect(faults.matched() >= 3 && faults.hits() == 1)
        faults.arm(.failing(.write, EIO, path: "JOURNAL"))
        for _ in 0..<3 { #expect(try client.call("SET k 5").contains("Input/output error")) }
        faults.disarm()
        #expect(try client.call("SET k 6") == "+OK\r\n")
        #expect(try client.call("GET k") == "$1\r\n6\r\n")
    }

    @Test func faultsCanMakeCallsFailAtARate() throws {
        let client = try daemon().connect()
        faults.arm(.failing(.write, ENOSPC, path: "JOURNAL", oneIn: 4, seed: 7))
        let replies = try (0..<200).map { try client.call("SET k \($0)") }
        let refused = replies.count { $0.hasPrefix("-ERR") }
        #expect((20..<100).contains(refused), "\(refused) of 200")
        faults.disarm()
        let last = replies.lastIndex(of: "+OK\r\n")
        #expect(try client.call("GET k").contains("\r\n\(try #require(last))\r\n"))
    }

    @Test("a write can be shortened") func writesAreShort() throws {
        let client = try daemon().connect()
        var rule = FaultControl.Rule(.write, .shorten)
        (rule.path, rule.count) = ("JOURNAL", 1)
        faults.arm(rule)
        let replies = try (0..<2).map { try client.call("SET k value-\($0)") }
        #expect(faults.hits() == 1)
        let value = try #require(replies.lastIndex(of: "+OK\r\n"))
        #expect(try client.call("GET k") == "$7\r\nvalue-\(value)\r\n")
    }

    @Test("a process can be killed before or after a call", arguments: [false, true])
    func theProcessDiesAtACall(_ after: Bool) throws {
        let daemon = try daemon(["--durability", "always"])
        let client = try daemon.connect()
        #expect(try client.call("SET k 1") == "+OK\r\n")
        let syncs = faults.made(.sync)
        faults.arm(.killing(.write, at: 1, after: after))
        #expect(throws: (any Error).self) { try client.call("SET k 2") }
        #expect(try daemon.process.waitForExit() == .killed(signal: SIGKILL))
        #expect(faults.made(.sync) == syncs)
        faults.disarm()
        #expect(try self.daemon().connect().call("GET k") == "$1\r\n\(after ? 2 : 1)\r\n")
    }

    @Test func faultsCanPauseACallUntilItIsReleased() throws {
        let client = try daemon(["--durability", "always"]).connect()
        faults.arm(FaultControl.Rule(.sync, .pause))
        try client.send(["SET", "k", "1"])
        wait { faults.hits() > 0 }
        faults.release()
        faults.disarm()
        #expect(try client.receive() == Array("+OK\r\n".utf8))
    }

    /// A fault that is armed before a start affects the start.
    @Test("faults can make the start fail") func theStartFails() throws {
        try daemon().stop()
        faults.arm(.failing([.open, .create], EMFILE, path: "LOCK"))
        #expect(throws: ChildProcess.Failure.self) { try self.daemon() }
        faults.disarm()
        _ = try daemon()
    }

    @Test("the wall clock can be moved") func theWallClockMoves() throws {
        let hour: Int64 = 3_600_000_000_000
        faults.wallOffset = -hour
        let client = try daemon().connect()
        func ahead() throws -> Int {
            let words = try client.call("TIME").split(separator: "\r\n")
            return try #require(Int(words[2])) - time(nil)
        }
        #expect((-3600 ... -3540).contains(try ahead()))
        #expect(try client.call("SET k v EX 7000") == "+OK\r\n")
        faults.wallOffset = hour
        #expect((3600...3660).contains(try ahead()))
        #expect(try client.call("GET k") == "$-1\r\n")
    }

    @Test func theTraceContainsTheFileCallsOfTheDaemon() throws {
        let client = try daemon(["--durability", "always"]).connect()
        let before = faults.traceLength
        #expect(try client.call("SET k a-value-that-can-be-found") == "+OK\r\n")
        #expect(faults.isTraceComplete)
        let records = FileTrace(faults.trace).records(from: before)
        let value = Array("a-value-that-can-be-found".utf8)
        #expect(records.contains { $0.dataIsFound(value, in: faults.trace) })
        #expect(records.contains { $0.event.isSync })
        let names = FileTrace(faults.trace).records().compactMap(\.event.createdName)
        #expect(names.contains("LOCK") && names.contains { $0.hasPrefix("JOURNAL/0") }, "\(names)")
    }
}
