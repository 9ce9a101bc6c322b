import LarderEngine
import LarderPlatform
import LarderTestSupport
import Testing

/// A salvage is killed, or gets an error from the system, at any of its file calls. No data is lost: the next attempt
/// finds all of it.
@Suite(.enabled(if: FaultLibrary.isAvailable)) final class SalvageFaultTests {
    private let place: TemporaryDirectory
    private let faults: FaultControl
    private var daemons: [DaemonProcess] = []
    private var larder = ""
    private let kept: String

    init() throws {
        place = try TemporaryDirectory(inMemory: true)
        faults = try FaultControl(in: place)
        kept = place.path + "/kept"
        let daemon = try start()
        larder = daemon.larder
        let client = try daemon.connect()
        #expect(try client.call("SELECT books") == "+OK\r\n")
        for index in 0..<200 { #expect(try client.call("SET k\(index) old") == "+OK\r\n") }
        #expect(try client.call("SAVE") == "+OK\r\n")
        for index in 0..<100 { #expect(try client.call("SET k\(index) new\(index)") == "+OK\r\n") }
        #expect(try client.call("SAVE") == "+OK\r\n")
        // These changes are only in the journal.
        for index in 0..<50 { #expect(try client.call("SET j\(index) \(index)") == "+OK\r\n") }
        #expect(try client.call("DEL k150") == ":1\r\n")
        daemon.kill()
        let epoch = try #require(try FileSystem.list(larder + "/books").first { UInt64($0) != nil })
        try flipBit(inTheManifestOf: "\(larder)/books/\(epoch)")
        try copy(larder, to: kept)
    }

    /// Flips a bit of a manifest. LevelDB refuses the manifest; a salvage can determine which bit was flipped, so that
    /// nothing is lost.
    private func flipBit(inTheManifestOf epoch: String) throws {
        let name = try #require(try FileSystem.list(epoch).last { $0.hasPrefix("MANIFEST-") })
        var bytes = try #require(try FileSystem.read(epoch + "/" + name))
        bytes[20] ^= 1
        _ = try FileSystem.replace(epoch + "/" + name, with: bytes)
    }

    private func start() throws -> DaemonProcess {
        let daemon = try DaemonProcess(["--policy", "never"], in: place, faults: faults)
        daemons.append(daemon)
        return daemon
    }

    private func copy(_ from: String, to: String) throws {
        try FileSystem.makeDirectories(to)
        for name in try FileSystem.list(from) {
            if FileSystem.isDirectory(from + "/" + name) {
                try copy(from + "/" + name, to: to + "/" + name)
            } else {
                let bytes = try #require(try FileSystem.read(from + "/" + name, bytesMax: 1 << 28))
                _ = try FileSystem.replace(to + "/" + name, with: bytes)
            }
        }
    }

    private func restore() throws {
        try FileSystem.removeTree(larder)
        try copy(kept, to: larder)
    }

    /// Counts the calls of a salvage that change something below `path`.
    private func count(_ path: String) throws -> UInt64 {
        try restore()
        faults.count(.changing, path: path)
        let daemon = try start()
        let client = try daemon.connect()
        #expect(try client.call("SELECT books") == "+OK\r\n")
        #expect(try client.call("GET k1") == "$4\r\nnew1\r\n")
        let matched = faults.matched()
        faults.disarm()
        daemon.kill()
        return matched
    }

    private func checkAll(_ client: SocketClient, _ what: String) throws {
        #expect(try client.call("SELECT books") == "+OK\r\n")
        for index in 0..<100 {
            #expect(try client.call("GET k\(index)").hasSuffix("\r\nnew\(index)\r\n"), "\(what): k\(index)")
        }
        for index in 100..<200 {
            let expected = index == 150 ? "$-1\r\n" : "$3\r\nold\r\n"
            #expect(try client.call("GET k\(index)") == expected, "\(what): k\(index)")
        }
        for index in 0..<50 {
            #expect(try client.call("GET j\(index)").hasSuffix("\r\n\(index)\r\n"), "\(what): j\(index)")
        }
    }

    /// Returns the points to try; with LARDER_SALVAGE_POINTS, all of them.
    private func points(_ total: UInt64) -> [UInt64] {
        let all = TestSetting.salvagePoints.isSet
        return Array(stride(from: 1, through: total, by: all ? 1 : Int(max(1, total / 12))))
    }

    /// Starts a daemon that a rule kills before it is ready or during a request.
    private func dieWhileSalvaging() throws {
        let killed: DaemonProcess
        do {
            killed = try start()
        } catch let error as ChildProcess.Failure where error.description.contains("ended without writing") {
            return
        }
        let client = try? killed.connect()
        _ = try? client?.call("SELECT books")
        _ = try? client?.call("GET k1")
        // A busy machine may have counted calls of the background that are not made now.
        if faults.hits() == 0 { killed.kill() }
        _ = try killed.process.waitForExit()
    }

    @Test func aSalvageKilledAtAnyCallLosesNothing() throws {
        let total = try count("books")
        #expect(total > 20)
        var killedCount = 0
        for point in points(total) {
            try restore()
            var rule = FaultControl.Rule.killing(.changing, at: point, after: point.isMultiple(of: 2))
            rule.path = "books"
            faults.arm(rule)
            try dieWhileSalvaging()
            killedCount += faults.hits() > 0 ? 1 : 0
            faults.disarm()
            let daemon = try start()
            try checkAll(try daemon.connect(), "killed at \(point): \(faults.lastHit)")
            #expect(try FileSystem.list(larder + "/DAMAGED").allSatisfy { $0.hasSuffix("-books") })
            daemon.kill()
        }
        #expect(killedCount >= points(total).count - 3)
    }

    @Test func aSalvageWithADiskErrorAtAnyCallLosesNothing() throws {
        let total = try count("books")
        for point in points(total) {
            for error in [ENOSPC, EIO] {
                try restore()
                faults.arm(.failing(.changing, error, path: "books", from: point))
                let daemon = try start()
                let client = try daemon.connect()
                #expect(try client.call("SELECT books") == "+OK\r\n")
                let reply = try client.call("GET k1")
                #expect(reply == "$4\r\nnew1\r\n" || reply.hasPrefix("-"), "\(point): \(reply)")
                #expect(try client.call("GET k150") != "$3\r\nold\r\n")
                faults.disarm()
                try checkAll(client, "errno \(error) at \(point): \(faults.lastHit)")
                daemon.kill()
                let again = try start()
                try checkAll(try again.connect(), "errno \(error) at \(point), again")
                again.kill()
            }
        }
    }
}
