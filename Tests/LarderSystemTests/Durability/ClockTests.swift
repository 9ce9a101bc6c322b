import LarderPlatform
import LarderTestSupport
import Testing

/// Tests of a daemon whose wall clock is set back and forward, over restarts and while it runs. The daemon makes real
/// system calls; only the time that the clock returns is simulated.
@Suite(.enabled(if: FaultLibrary.isAvailable)) final class ClockTests {
    private let place: TemporaryDirectory
    private let faults: FaultControl
    /// Keeps the daemons until the test ends, because a daemon without a reference is killed.
    private var daemons: [DaemonProcess] = []
    private static let millisecond: Int64 = 1_000_000

    init() throws {
        place = try TemporaryDirectory(inMemory: true)
        faults = try FaultControl(in: place)
    }

    private func daemon(_ options: [String] = []) throws -> DaemonProcess {
        let daemon = try DaemonProcess(options, in: place, faults: faults)
        daemons.append(daemon)
        return daemon
    }

    /// The names in `DAMAGED`; empty if there is none.
    private var setAside: [String] {
        guard let directory = opendir(faults.root + "/DAMAGED") else { return [] }
        closedir(directory)
        return ["DAMAGED"]
    }

    /// Regression test: after a clean stop, the clock was set back, and SET was followed by kill -9. The next start
    /// moved every database to DAMAGED.
    @Test(arguments: [50, 30_000, 3_600_000] as [Int64])
    func aClockSetBackDuringARestartDamagesNoDatabase(_ milliseconds: Int64) throws {
        let first = try daemon()
        #expect(try first.connect().call("SET before 1 PX 600000") == "+OK\r\n")
        #expect(try first.stop() == .exited(0))
        faults.wallOffset = -milliseconds * Self.millisecond
        let second = try daemon()
        #expect(try second.connect().call("SET after 1 PX 600000") == "+OK\r\n")
        second.kill()
        let third = try daemon()
        let client = try third.connect()
        #expect(try client.call("GET before") == "$1\r\n1\r\n")
        #expect(try client.call("GET after") == "$1\r\n1\r\n")
        #expect(try client.call("DBSIZE") == ":2\r\n")
        third.kill()
        // Repeat this with a daemon that was not used.
        let fourth = try daemon()
        fourth.kill()
        #expect(try daemon().connect().call("DBSIZE") == ":2\r\n")
        #expect(setAside.isEmpty)
    }

    /// A client has seen that an entry is expired. The entry stays expired if the clock is set back by 20 to 61 s
    /// across a kill -9.
    @Test(arguments: [20_000, 61_000] as [Int64])
    func expiredEntriesStayExpiredAfterTheClockWasSetBack(_ milliseconds: Int64) throws {
        let first = try daemon()
        let client = try first.connect()
        #expect(try client.call("SET own 1 PX 15000") == "+OK\r\n")
        #expect(try client.call("POLICY every:10") == "+OK\r\n")
        #expect(try client.call("SET governed 1") == "+OK\r\n")
        // 15 s later.
        faults.wallOffset = 15_000 * Self.millisecond
        #expect(try client.call("GET own") == "$-1\r\n")
        #expect(try client.call("GET governed") == "$-1\r\n")
        // The time mark is written within a quarter of a second: wait for that write.
        faults.count(.write, path: "TIME")
        while faults.matched() == 0 { _ = try client.call("GET own") }
        first.kill()
        faults.wallOffset = (15_000 - milliseconds) * Self.millisecond
        let again = try daemon().connect()
        #expect(try again.call("GET own") == "$-1\r\n")
        #expect(try again.call("POLICY never") == "+OK\r\n")
        #expect(try again.call("GET governed") == "$-1\r\n")
        #expect(try again.call("SET governed 2 NX") == "+OK\r\n")
    }

    /// If the stored time cannot be read, the start fails: with the wall clock alone, expired entries would reappear.
    @Test(arguments: [(FileCalls.open, EMFILE), (.read, EIO)])
    func aStartWithoutAReadableTimeFails(_ call: FileCalls, _ number: Int32) throws {
        let first = try daemon()
        let client = try first.connect()
        #expect(try client.call("SET k 1 PX 15000") == "+OK\r\n")
        faults.wallOffset = 60_000 * Self.millisecond
        #expect(try client.call("GET k") == "$-1\r\n")
        try first.stop()
        faults.wallOffset = 0
        faults.arm(.failing(call, number, path: "TIME", count: 1))
        let error = #expect(throws: ChildProcess.Failure.self) { try daemon() }
        #expect(error?.description.contains("expired entries could come back") ?? false, "\(error as Any)")
        faults.disarm()
        #expect(try daemon().connect().call("GET k") == "$-1\r\n")
    }

    /// Simulates a clock that is ahead by an hour for a moment.
    @Test func aClockThatWasBrieflyAheadDoesNotExpireEntries() throws {
        let options = ["--durability", "always"]
        let first = try daemon(options)
        let client = try first.connect()
        #expect(try client.call("POLICY never") == "+OK\r\n")
        faults.wallOffset = 3_600_000 * Self.millisecond
        #expect(try client.call("GET k") == "$-1\r\n")
        faults.wallOffset = 0
        #expect(try client.call("SET k 1") == "+OK\r\n")
        #expect(try client.call("SET short 1 PX 500000") == "+OK\r\n")
        first.kill()
        let again = try daemon(options).connect()
        #expect(try again.call("GET k") == "$1\r\n1\r\n")
        #expect(try again.call("KEYS k") == "*1\r\n$1\r\nk\r\n")
        #expect(try again.call("SET k 2 NX") == "$-1\r\n")
        let left = try again.call("PTTL short").filter(\.isNumber)
        #expect((1...500_000).contains(try #require(Int(left))))
        // Clients give instants by the wall clock.
        let now = time(nil)
        #expect(try again.call("SET until 1 EXAT \(now + 100)") == "+OK\r\n")
        #expect(try again.call("EXPIRETIME until") == ":\(now + 100)\r\n")
    }
}
