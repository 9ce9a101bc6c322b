import LarderPlatform
import LarderTestSupport
import Testing

/// Tests of a full or failing disk, as the daemon's clients see it. Writes return errors, and reads continue. Writes
/// are accepted again when the fault ends. Acknowledged writes survive SIGKILL.
@Suite struct FailingDiskTests {
    /// The acknowledged entries.
    private final class Book {
        var values: [String: String] = [:]
        /// Keys whose write returned an error, and which may or may not be stored.
        var open: Set<String> = []

        func set(_ client: SocketClient, _ key: String, _ value: String) throws -> String {
            let reply = String(decoding: try client.call(["SET", key, value]), as: UTF8.self)
            if reply == "+OK\r\n" {
                values[key] = value
                open.remove(key)
            }
            return reply
        }

        func check(_ client: SocketClient) throws {
            for (key, value) in values {
                let reply = String(decoding: try client.call(["GET", key]), as: UTF8.self)
                #expect(reply == "$\(value.utf8.count)\r\n\(value)\r\n", "\(key)")
            }
        }
    }

    private func limitFileSize(_ daemon: DaemonProcess, _ bytes: String) throws {
        let (end, _, errors) = try ChildProcess.run(
            "prlimit", ["--pid", "\(daemon.process.pid)", "--fsize=\(bytes):unlimited"])
        #expect(end == .exited(0), "prlimit is a part of util-linux: \(errors)")
    }

    /// Text that does not compress, so that the files grow by its whole length.
    private func text(_ count: Int, _ generator: inout SeededGenerator) -> String {
        String(decoding: generator.bytes(count: count).map { 0x21 + $0 % 90 }, as: UTF8.self)
    }

    /// The daemon reads the journal twice, and accepts connections after the first time.
    @Test(.enabled(if: FaultLibrary.isAvailable)) func theDaemonExitsIfTheJournalCannotBeReplayed() throws {
        let place = try TemporaryDirectory(inMemory: true)
        let faults = try FaultControl(in: place)
        let first = try DaemonProcess(in: place, faults: faults)
        #expect(try first.connect().call("SET k 1") == "+OK\r\n")
        first.kill()
        faults.arm(.failing(.open, EIO, path: "JOURNAL/", from: 2))
        let second = try DaemonProcess(in: place, faults: faults, ready: " error ")
        #expect(try second.process.waitForExit() == .exited(1))
        #expect(second.process.errors.contains("Input/output error"))
        faults.disarm()
        let third = try DaemonProcess(in: place, faults: faults)
        #expect(try third.connect().call("GET k") == "$1\r\n1\r\n")
    }

    /// Monitoring tools for Redis read this field.
    @Test(.enabled(if: FaultLibrary.isAvailable)) func infoReportsFailingWrites() throws {
        let place = try TemporaryDirectory(inMemory: true)
        let faults = try FaultControl(in: place)
        let daemon = try DaemonProcess(in: place, faults: faults)
        let client = try daemon.connect()
        func status() throws -> String? {
            try client.call("INFO persistence").split(separator: "\r\n").map(String.init)
                .first { $0.hasPrefix("aof_last_write_status:") }
        }
        #expect(try client.call("SET k 1") == "+OK\r\n")
        #expect(try status() == "aof_last_write_status:ok")
        faults.arm(.failing(.changing, ENOSPC))
        #expect(try client.call("SET k 2").hasPrefix("-"))
        #expect(try status() == "aof_last_write_status:err")
        #expect(try client.call("INFO persistence").contains("\r\nlast_write_errno:\(ENOSPC)\r\n"))
        #expect(try client.call("GET k") == "$1\r\n1\r\n")
        faults.disarm()
        #expect(try client.call("SET k 3") == "+OK\r\n")
        #expect(try status() == "aof_last_write_status:ok")
    }

    /// Regression test: a backup tried a thousand times while every database was locked, and then reported merges of
    /// tables as the reason.
    @Test(.enabled(if: FaultLibrary.isAvailable)) func aBackupReportsAFailingStatAtOnce() throws {
        let place = try TemporaryDirectory(inMemory: true)
        let faults = try FaultControl(in: place)
        let daemon = try DaemonProcess(in: place, faults: faults)
        let client = try daemon.connect()
        #expect(try client.call("SET k 1") == "+OK\r\n")
        #expect(try client.call("SAVE") == "+OK\r\n")
        faults.arm(.failing(.stat, EIO, path: "MANIFEST"))
        let reply = try client.call("BACKUP \(place.path)/backup")
        #expect(reply.contains("stat") && reply.contains("Input/output error"), "\(reply)")
        // Only a few files were opened: the backup did not retry.
        #expect(faults.hits() < 10)
        faults.disarm()
        #expect(try !client.call("BACKUP \(place.path)/backup").hasPrefix("-"))
    }

    @Test(
        "writes fail at a file size limit, and continue when it is raised", arguments: ["os", "everysecond", "always"])
    func aTemporaryDiskLimit(_ durability: String) throws {
        var generator = SeededGenerator(seed: testSeed())
        let place = try TemporaryDirectory(inMemory: true)
        let daemon = try DaemonProcess(["--durability", durability], in: place)
        let book = Book()
        let client = try daemon.connect()
        for round in 0..<3 {
            for index in 0..<50 {
                #expect(try book.set(client, "\(round):\(index)", text(1000, &generator)) == "+OK\r\n")
            }
            try limitFileSize(daemon, "10")
            for index in 0..<20 {
                let reply = try book.set(client, "\(round):\(index)", "not to be seen")
                let isExplained = reply.contains("was not committed") || reply.contains("database '0'")
                #expect(reply.hasPrefix("-ERR ") && isExplained, "\(reply)")
            }
            #expect(try client.call("MSET a 1 b 2").hasPrefix("-ERR "))
            #expect(try client.call("DEL \(round):0 \(round):1").hasPrefix("-ERR "))
            #expect(try client.call("SELECT new") == "+OK\r\n")
            #expect(try client.call("SET k v").hasPrefix("-ERR "))
            #expect(try client.call("SELECT 0") == "+OK\r\n")
            // Reads continue, in this database and in others.
            try book.check(client)
            try book.check(try daemon.connect())
            let count = try client.call("DBSIZE")
            #expect(count == ":\(50 * (round + 1))\r\n", "\(count)")
            #expect(try client.call("SCAN 0 COUNT 1000").hasPrefix("*2\r\n$1\r\n0\r\n*\(50 * (round + 1))\r\n"))
            #expect(try client.call("INFO persistence").contains("durability:\(durability)"))
            try limitFileSize(daemon, "unlimited")
            #expect(try book.set(client, "after:\(round)", "x").hasPrefix("+OK"), "writes are accepted again at once")
            _ = try client.call("DEL after:\(round)")
            book.values["after:\(round)"] = nil
            #expect(try book.set(client, "\(round):0", text(1000, &generator)) == "+OK\r\n")
        }
        daemon.kill()
        #expect(daemon.process.errors.contains(" error commit failed, "))
        let again = try DaemonProcess(in: place)
        try book.check(try again.connect())
        #expect(!again.process.errors.contains("damaged"))
    }

    /// A pipeline reaches the file size limit in the middle of a file: some replies are OK, the replies after them are
    /// errors. A program with a sanitizer does not start under such a limit.
    @Test(
        "a pipeline that reaches a file size limit gets errors for the remaining writes",
        .enabled(if: !TestSetting.sanitized.isSet))
    func aLimitFromTheStart() throws {
        var generator = SeededGenerator(seed: testSeed())
        let place = try TemporaryDirectory(inMemory: true)
        let daemon = try DaemonProcess(in: place, wrapper: ["bash", "-c", "ulimit -S -f 300; exec \"$@\"", "bash"])
        let book = Book()
        let client = try daemon.connect()
        var refused = 0
        for batch in 0..<20 {
            let pairs = (0..<50).map { ("\(batch):\($0)", text(1000, &generator)) }
            try client.send(pairs.flatMap { encodeRequest(["SET", $0.0, $0.1]) })
            for (key, value) in pairs {
                let reply = String(decoding: try client.receive(), as: UTF8.self)
                if reply == "+OK\r\n" {
                    book.values[key] = value
                } else {
                    #expect(reply.hasPrefix("-ERR "))
                    refused += 1
                }
            }
        }
        #expect(refused > 0)
        #expect(book.values.count >= 50)
        try book.check(client)
        try limitFileSize(daemon, "unlimited")
        let reply = try book.set(client, "after", "x")
        #expect(reply == "+OK\r\n", "\(reply)")
        daemon.kill()
        let again = try DaemonProcess(in: place)
        try book.check(try again.connect())
    }

    /// Fills a real file system of two megabytes. Without a disk limit, nothing is evicted.
    @Test(
        "a full disk refuses writes, but reads and purges work",
        .enabled(if: SmallDisk.isPossible, "mounting a small file system needs root"))
    func aFullDisk() throws {
        var generator = SeededGenerator(seed: testSeed())
        let disk = try SmallDisk(bytes: 2_000_000)
        let options = ["--dir", disk.path + "/larder", "--socket", disk.path + "/socket", "--max-disk", "none"]
        let daemon = try ChildProcess(try DaemonProcess.program(), options)
        defer { daemon.killNow() }
        _ = try daemon.waitForErrorLine(containing: " ready: ")
        let book = Book()
        let client = try SocketClient(disk.path + "/socket")
        var index = 0
        while try book.set(client, "k\(index)", text(10_000, &generator)) == "+OK\r\n" { index += 1 }
        #expect(index > 20)
        try book.check(client)
        // A smaller value may still fit.
        _ = try book.set(client, "small", "v")
        try book.check(client)
        // A purge needs some space temporarily, and there is enough.
        #expect(try client.call("SELECT other") == "+OK\r\n")
        #expect(try client.call("GET x") == "$-1\r\n")
        #expect(try client.call("SELECT 0") == "+OK\r\n")
        let flushed = try client.call("FLUSHDB")
        #expect(flushed == "+OK\r\n", "\(flushed)")
        #expect(try client.call("DBSIZE") == ":0\r\n")
        #expect(try book.set(client, "k0", "new") == "+OK\r\n")
        book.values = ["k0": "new"]
        daemon.killNow()
        let again = try ChildProcess(try DaemonProcess.program(), options)
        defer { again.killNow() }
        _ = try again.waitForErrorLine(containing: " ready: ")
        try book.check(try SocketClient(disk.path + "/socket"))
    }

    /// If clients open more connections than the process may have descriptors, the additional connections are refused,
    /// and nothing is reported as damage.
    @Test("too many connections are refused, and not reported as damage") func outOfDescriptors() throws {
        let place = try TemporaryDirectory(inMemory: true)
        let daemon = try DaemonProcess(in: place, wrapper: ["prlimit", "--nofile=60:60"])
        let first = try daemon.connect()
        #expect(try first.call("SET k v") == "+OK\r\n")
        let clients = try (0..<100).map { _ in try daemon.connect() }
        #expect(daemon.process.errors.contains(" clients instead of 10000"))
        #expect(try first.call("GET k") == "$1\r\nv\r\n", "connected clients are served")
        #expect(try first.call("SELECT other") == "+OK\r\n")
        let reply = try first.call("SET k v")
        #expect(reply == "+OK\r\n" || reply.hasPrefix("-ERR "), "\(reply)")
        for client in clients { client.close() }
        while try !first.call("INFO clients").contains("connected_clients:1\r\n") { nap() }
        #expect(try daemon.connect().call("GET k") == "$1\r\nv\r\n")
        #expect(try first.call("SET k v") == "+OK\r\n")
        #expect(try daemon.stop() == .exited(0))
        #expect(!daemon.process.errors.contains("damaged"))
    }
}
