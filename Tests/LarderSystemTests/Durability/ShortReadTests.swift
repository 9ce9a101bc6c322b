import LarderTestSupport
import Testing

/// Tests of reads that return less than requested, as POSIX allows. Code that treats a short read as the end of the
/// file loses the following data.
@Suite(.enabled(if: FaultLibrary.isAvailable)) struct ShortReadTests {
    private let place: TemporaryDirectory
    private let faults: FaultControl

    init() throws {
        place = try TemporaryDirectory(inMemory: true)
        faults = try FaultControl(in: place)
    }

    private func daemon() throws -> DaemonProcess {
        try DaemonProcess(["--durability", "always", "--max-databases", "2000"], in: place, faults: faults)
    }

    private func value(_ number: Int, of round: Int) -> String {
        "\(round)-\(number)-" + String(repeating: "a", count: 2000)
    }

    /// SAVE has moved the values from the journal to LevelDB's log. Because the process is then killed, the next start
    /// reads that log.
    @Test("short reads at startup lose nothing") func aStartWithShortReadsLosesNothing() throws {
        let count = 50
        for round in 0..<3 {
            let daemon = try daemon()
            let client = try daemon.connect()
            if round > 0 {
                #expect(faults.hits() > 0)
                #expect(try client.call("DBSIZE") == ":\(count)\r\n")
                for number in 0..<count {
                    let expected = value(number, of: round - 1)
                    #expect(try client.call("GET k\(number)") == "$\(expected.utf8.count)\r\n\(expected)\r\n")
                }
            }
            for number in 0..<count {
                #expect(try client.call("SET k\(number) \(value(number, of: round))") == "+OK\r\n")
            }
            #expect(try client.call("SAVE") == "+OK\r\n")
            daemon.kill()
            #expect(!daemon.process.errors.contains("damaged"))
            faults.arm(FaultControl.Rule(.read, .shorten))
        }
    }

    /// CURRENT is read with one call. A short result of that call would look like damage.
    @Test func aShortReadOfCURRENTLosesNothing() throws {
        var number: UInt64 = 0
        var hits: UInt64 = 1
        while hits > 0 {
            let first = try daemon()
            let client = try first.connect()
            #expect(try client.call("SET k \(number)") == "+OK\r\n")
            #expect(try client.call("SAVE") == "+OK\r\n")
            first.kill()
            number += 1
            var rule = FaultControl.Rule(.read, .shorten)
            (rule.path, rule.first, rule.count) = ("CURRENT", number, 1)
            faults.arm(rule)
            let second = try daemon()
            #expect(try second.connect().call("GET k").hasSuffix("\r\n\(number - 1)\r\n"))
            #expect(try second.connect().call("SAVE") == "+OK\r\n")
            hits = faults.hits()
            faults.disarm()
            second.kill()
            let log = second.process.errors
            #expect(!log.contains("damaged") && !log.contains("CURRENT"), "\(number): \(log)")
        }
        #expect(number > 5)
    }

    /// LevelDB maps the first thousand tables into memory, and reads the others with system calls. ThreadSanitizer does
    /// not support that many locks.
    @Test(.enabled(if: !TestSetting.sanitized.isSet)) func shortReadsOfTablesLoseNothing() throws {
        let count = 1050
        let first = try daemon()
        var client = try first.connect()
        let text = value(0, of: 0)
        for number in 0..<count {
            #expect(try client.call("SELECT d\(number)") == "+OK\r\n")
            #expect(try client.call("SET k \(text)") == "+OK\r\n")
        }
        #expect(try client.call("SAVE") == "+OK\r\n")
        first.kill()
        faults.arm(FaultControl.Rule(.read, .shorten))
        let second = try daemon()
        client = try second.connect()
        for number in 0..<count {
            #expect(try client.call("SELECT d\(number)") == "+OK\r\n")
            #expect(try client.call("GET k") == "$\(text.utf8.count)\r\n\(text)\r\n")
        }
        #expect(faults.hits() > 0)
        second.kill()
        #expect(!second.process.errors.contains("damaged"))
    }
}
