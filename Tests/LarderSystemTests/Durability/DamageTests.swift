import LarderEngine
import LarderPlatform
import LarderTestSupport
import Testing

/// Damaged databases never stop the daemon, and are never emptied without a report.
@Suite struct DamageTests {
    enum Damage: String, CaseIterable, Sendable {
        case currentWrong, manifestMissing, pointerBroken, pointerMissing
    }

    /// Creates a larder with the databases `0` and `books`, and stops its daemon.
    private func makeLarder(_ place: TemporaryDirectory) throws -> String {
        let daemon = try DaemonProcess(in: place)
        let client = try daemon.connect()
        for name in ["0", "books"] {
            #expect(try client.call("SELECT \(name)") == "+OK\r\n")
            #expect(try client.call("POLICY low") == "+OK\r\n")
            for index in 0..<100 { #expect(try client.call("SET k\(index) \(name)\(index)") == "+OK\r\n") }
        }
        #expect(try daemon.stop() == .exited(0))
        return daemon.larder
    }

    /// The only directory of `database` that contains LevelDB's files.
    private func epoch(_ larder: String, _ database: String) throws -> String {
        let names = try FileSystem.list("\(larder)/\(database)").filter { UInt64($0) != nil }
        #expect(names.count == 1)
        return "\(larder)/\(database)/\(names[0])"
    }

    private func apply(_ damage: Damage, _ larder: String) throws {
        let files = try epoch(larder, "books")
        switch damage {
        case .currentWrong: _ = try FileSystem.replace(files + "/CURRENT", with: Array("MANIFEST-009999\n".utf8))
        case .manifestMissing:
            for name in try FileSystem.list(files) where name.hasPrefix("MANIFEST") { unlink(files + "/" + name) }
        case .pointerBroken: truncate(larder + "/books/POINTER", 40)
        case .pointerMissing: unlink(larder + "/books/POINTER")
        }
    }

    @Test(arguments: Damage.allCases)
    func aDamagedDatabaseIsSalvagedAtStartup(_ damage: Damage) throws {
        let place = try TemporaryDirectory(inMemory: true)
        let larder = try makeLarder(place)
        try apply(damage, larder)
        let daemon = try DaemonProcess(in: place)
        let client = try daemon.connect()
        #expect(try client.call("SELECT books") == "+OK\r\n")
        _ = try client.call("GET k7")
        let line = try daemon.process.waitForErrorLine(containing: "and salvaged: ")
        #expect(line.contains("the damaged files are in \(larder)/DAMAGED/"))
        #expect(daemon.process.errors.contains(" error database 'books' is damaged: "))
        #expect(try client.call("SELECT 0") == "+OK\r\n")
        #expect(try client.call("GET k7") == "$2\r\n07\r\n", "the other databases are not affected")
        #expect(try client.call("DBSIZE") == ":100\r\n")
        #expect(try client.call("SELECT books") == "+OK\r\n")
        if damage != .pointerBroken, damage != .pointerMissing {
            #expect(try client.call("GET k7") != "$-1\r\n", "readable entries are kept")
            #expect(try client.call("POLICY").contains("$3\r\nlow\r\n"), "the policy stays")
        }
        #expect(try client.call("SET k v") == "+OK\r\n")
        #expect(try client.call("INFO persistence").contains("salvages:1\r\n"))
        #expect(try daemon.stop() == .exited(0))
        let kept = try FileSystem.list(larder + "/DAMAGED")
        #expect(kept.count == 1 && kept[0].hasSuffix("-books"))
        #expect(FileSystem.size(larder + "/DAMAGED/" + kept[0]) > 1000, "the damaged files are kept")
        let again = try DaemonProcess(in: place)
        #expect(try again.connect().call("DBSIZE") == ":100\r\n")
        #expect(!again.process.errors.contains("damaged"))
    }

    /// Flipped bits on the disk are found by a read while the daemon runs, and cause a salvage.
    @Test("a damaged database is salvaged when a read finds the damage")
    func aDamagedDatabaseIsSalvagedAfterARead() throws {
        let place = try TemporaryDirectory(inMemory: true)
        let larder = try makeLarder(place)
        // When LevelDB is opened again, it writes its log to a table.
        #expect(try DaemonProcess(in: place).stop() == .exited(0))
        let files = try epoch(larder, "books")
        // Use the largest table: another one contains only the format record.
        let table = try #require(
            try FileSystem.list(files).filter { $0.hasSuffix(".ldb") }
                .max { FileSystem.size(files + "/" + $0) < FileSystem.size(files + "/" + $1) })
        var bytes = try #require(try FileSystem.read(files + "/" + table, bytesMax: 1 << 20))
        // Flip more than one bit, because a single one could be corrected.
        for offset in 20..<60 { bytes[offset] ^= 0x5a }
        _ = try FileSystem.replace(files + "/" + table, with: bytes)
        let daemon = try DaemonProcess(in: place)
        let client = try daemon.connect()
        #expect(try client.call("SELECT books") == "+OK\r\n")
        let reply = try client.call("GET k0")
        // The sweep may have found the damage first.
        #expect(reply.hasPrefix("-ERR get in database 'books'") || reply == "$-1\r\n", "\(reply)")
        let line = try daemon.process.waitForErrorLine(containing: "and salvaged: ")
        #expect(line.contains("'books'") && line.contains("entries may be lost under the keys"))
        #expect(try client.call("GET k0") == "$-1\r\n")
        #expect(try client.call("SET k0 new") == "+OK\r\n")
        #expect(try client.call("SELECT 0") == "+OK\r\n")
        #expect(try client.call("GET k0") == "$2\r\n00\r\n")
    }

    /// LevelDB has mapped the table into memory, so SIGBUS terminates the daemon.
    @Test("a daemon whose table another program truncates names the file, and the next start salvages it")
    func aTableThatIsTruncatedInUseIsNamed() throws {
        let place = try TemporaryDirectory(inMemory: true)
        let options = ["--memory", "0", "--policy", "low"]
        let first = try DaemonProcess(options, in: place)
        var random = SeededGenerator(seed: 7)
        let client = try first.connect()
        for index in 0..<100 {
            let value = Incompressible.bytes(count: 10_000, &random)
            try client.send(encodeRequest([Array("SET".utf8), Array("k\(index)".utf8), value]))
            #expect(try client.receive() == Array("+OK\r\n".utf8))
        }
        #expect(try first.stop() == .exited(0))
        // When LevelDB is opened again, it writes its log to a table.
        let daemon = try DaemonProcess(options, in: place)
        let reader = try daemon.connect()
        try reader.send(["GET", "k0"])
        #expect(try reader.receive().count > 10_000)
        let files = try epoch(daemon.larder, "0")
        let table = try #require(
            try FileSystem.list(files).filter { $0.hasSuffix(".ldb") }.map { files + "/" + $0 }
                .max { FileSystem.size($0) < FileSystem.size($1) })
        #expect(FileSystem.size(table) > 1_000_000)
        #expect(truncate(table, 4096) == 0)
        for index in 50..<100 { try reader.send(["GET", "k\(index)"]) }
        let line = try daemon.process.waitForErrorLine(containing: "is shorter than it was when it was opened")
        #expect(line.contains("larderd: \(table) is shorter"), "\(line)")
        #expect(try daemon.process.waitForExit() == .killed(signal: SIGBUS))
        let again = try DaemonProcess(options, in: place)
        let after = try again.connect()
        _ = try after.call("GET k99")
        _ = try again.process.waitForErrorLine(containing: "and salvaged: ")
        #expect(try after.call("SET k99 new") == "+OK\r\n")
        #expect(try after.call("GET k99") == "$3\r\nnew\r\n")
    }

    @Test func onlyDatabasesOfANewerFormatAreRefused() throws {
        let place = try TemporaryDirectory(inMemory: true)
        let larder = try makeLarder(place)
        let path = larder + "/books/POINTER"
        let old = try #require(try FileSystem.read(path))
        let newer = Array("larder-database 99\nsomething else\n".utf8)
        _ = try FileSystem.replace(path, with: newer)
        let daemon = try DaemonProcess(in: place)
        let client = try daemon.connect()
        #expect(try client.call("GET k7") == "$2\r\n07\r\n")
        #expect(try client.call("SELECT books") == "+OK\r\n")
        for line in ["GET k7", "SET k7 x", "KEYS *", "PURGE", "POLICY never"] {
            let reply = try client.call(line)
            #expect(reply.hasPrefix("-ERR ") && reply.contains("was written by a newer Larder"), "\(line): \(reply)")
        }
        #expect(try client.call("DATABASES").contains("$5\r\nstate\r\n$6\r\nfailed\r\n"))
        #expect(try daemon.stop() == .exited(0))
        #expect(try FileSystem.read(path) == newer, "nothing was changed")
        #expect(!FileSystem.exists(larder + "/DAMAGED"))
        let (end, _, errors) = try DaemonProcess.run(["--purge=books", "--dir", larder])
        #expect(end == .exited(1))
        #expect(errors.contains("was written by a newer Larder"))
        _ = try FileSystem.replace(path, with: old)
        let again = try DaemonProcess(in: place)
        let after = try again.connect()
        #expect(try after.call("SELECT books") == "+OK\r\n")
        #expect(try after.call("GET k7") == "$6\r\nbooks7\r\n")
    }
}
