import Foundation
import LarderPlatform
import LarderTestSupport
import Testing

/// Tests of the log's formats, and of the data that it never contains.
@Suite struct DaemonLogTests {
    /// Runs a daemon whose standard error is a pipe. `journal` may set `JOURNAL_STREAM` to that pipe.
    private func log(_ options: [String], journal: String = "") throws -> [Substring] {
        let place = try TemporaryDirectory(inMemory: true)
        let script = journal + "exec \"$0\" \"$@\""
        let daemon = try DaemonProcess(options, in: place, wrapper: ["sh", "-c", script], ready: "ready: ")
        #expect(try daemon.connect().call("SET k v") == "+OK\r\n")
        #expect(try daemon.stop() == .exited(0))
        return daemon.process.errors.split(separator: "\n")
    }

    private static let stream = "export JOURNAL_STREAM=$(stat -L -c %d:%i /proc/self/fd/2); "

    @Test("lines for systemd's journal have priorities") func systemdsJournalGetsPriorities() throws {
        let lines = try log(["--log-level", "debug"], journal: Self.stream)
        #expect(lines.allSatisfy { $0.hasPrefix("<6>") || $0.hasPrefix("<7>") }, "\(lines)")
        #expect(lines.contains { $0.hasPrefix("<7>allocator: ") })
        #expect(lines.contains("<6>stopping: SIGTERM"))
    }

    /// If the standard error of a service is redirected, `JOURNAL_STREAM` refers to its standard output.
    @Test("by default, log lines have priorities only if standard error is systemd's journal")
    func prioritiesByDefault() throws {
        for journal in [
            "", "export JOURNAL_STREAM=1:2; ", "export JOURNAL_STREAM=; ",
            "export JOURNAL_STREAM=$(stat -L -c %d:%i /proc/self/fd/1); ",
        ] {
            #expect(try log([], journal: journal).allSatisfy { $0.hasPrefix("2") && $0.contains("Z info ") })
        }
        #expect(try log(["--log-format", "text"], journal: Self.stream).allSatisfy { $0.contains("Z info ") })
        #expect(try log(["--log-format=systemd"]).allSatisfy { $0.hasPrefix("<6>") })
    }

    @Test("--log-format json writes one JSON object per line") func objectsOfJSON() throws {
        struct Event: Decodable {
            let time: String
            let level: String
            let message: String
        }
        let place = try TemporaryDirectory(inMemory: true)
        let daemon = try DaemonProcess(["--log-format", "json"], in: place, ready: "ready: ")
        let client = try daemon.connect()
        let text = "quote \" back \\ tab \t bell \u{7} escape \u{1b}[2J delete \u{7f} csi \u{9b} é"
        // The first script runs in a transaction, and the second one in memory, because the files are open then.
        for _ in 0..<2 {
            _ = try client.call(["EVAL", "redis.log(redis.LOG_WARNING, ARGV[1])", "0", text])
            _ = try client.call("SET key value")
        }
        #expect(try daemon.stop() == .exited(0))
        let events = try daemon.process.errors.split(separator: "\n").map {
            try JSONDecoder().decode(Event.self, from: Data($0.utf8))
        }
        #expect(events.allSatisfy { $0.time.count == 24 && ["info", "warning"].contains($0.level) })
        let lines = events.filter {
            $0.message.hasPrefix("script of default (client ") && $0.message.hasSuffix("): " + text)
        }
        #expect(lines.count == 2)
        #expect(!daemon.process.errors.contains("\u{1b}") && !daemon.process.errors.contains("\u{9b}"))
    }

    /// No failure causes a line with a value or a password, at any log level.
    @Test(arguments: ["text", "json"]) func theLogContainsNoValuesOrPasswords(_ format: String) throws {
        let place = try TemporaryDirectory(inMemory: true)
        let secret = place.path + "/secret"
        try Files.write(secret, Array("peach-word\nplum\n".utf8))
        let file = place.path + "/larderd.conf"
        try Files.write(file, Array("password-file = \(secret)\n".utf8))
        let faults = try FaultControl(in: place)
        let daemon = try DaemonProcess(
            ["--config", file, "--log-level", "debug", "--log-format", format, "--max-subscriber-output", "64k"],
            in: place, faults: faults, ready: "ready: ")
        let client = try daemon.connect()
        for line in [
            "GET peach-value", "AUTH peach-wrong", "AUTH default peach-wrong", "HELLO 3 AUTH default peach-wrong",
            "AUTH peach-word", "SET k peach-value", "SETEX k 5 peach-value", "SET k peach-value EX peach-value",
            "INCR k", "APPEND k peach-value", "GETSET k peach-value", "CONFIG SET requirepass peach-word",
            "CONFIG SET memory peach-value", "EVAL redis.call('set',KEYS[1],ARGV[1]) 1 k peach-value",
            "EVAL error(ARGV[1]) 0 peach-value", "EVAL redis.call('nosuch',ARGV[1]) 0 peach-value",
            "NOSUCH peach-value", "RESTORE k2 0 peach-value", "SLOWLOG GET", "CLIENT SETNAME client",
            "FETCH other WAIT peach-value", "PURGE PREFIX peach-value", "SAVE",
        ] { _ = try client.call(line) }
        // Cause a write that the disk refuses, a subscriber that does not read, and a malformed request.
        faults.arm(.failing(.write, ENOSPC))
        #expect(try client.call("SET k peach-value").hasPrefix("-"))
        faults.disarm()
        while try !client.call("SET k peach-value").hasPrefix("+OK") { nap() }
        let slow = try daemon.connect()
        _ = try slow.call("AUTH peach-word")
        try slow.send(Array("SUBSCRIBE c\r\n".utf8))
        let long = String(repeating: "peach-value,", count: 10_000)
        while try client.call("PUBLISH c \(long)") != ":0\r\n" { nap() }
        let broken = try daemon.connect()
        _ = try broken.call("AUTH peach-word")
        try broken.send(Array("*2\r\n$3\r\nGET\r\n$peach-value\r\n".utf8))
        _ = try broken.receiveToEnd()
        daemon.process.send(signal: SIGHUP)
        try Files.write(secret, Array("peach-other\n".utf8))
        daemon.process.send(signal: SIGHUP)
        #expect(try daemon.stop() == .exited(0))
        #expect(!daemon.process.errors.contains("peach"), "\(daemon.process.errors)")
        #expect(daemon.process.errors.contains("No space left on device"), "the failure was logged")
    }

    /// If nothing reads standard error, and its pipe is full before the daemon starts, the daemon still serves and
    /// stops normally. This does not depend on what the daemon logs.
    @Test func anUnreadLogDoesNotBlockTheDaemon() throws {
        let place = try TemporaryDirectory(inMemory: true)
        let pipe = place.path + "/log"
        try #require(mkfifo(pipe, 0o600) == 0)
        let end = open(pipe, O_RDWR | O_NONBLOCK | O_CLOEXEC)
        defer { close(end) }
        let filling = [UInt8](repeating: 0x78, count: 4096)
        while write(end, filling, filling.count) > 0 {}
        let socket = place.path + "/socket"
        let daemon = try ChildProcess(
            "sh",
            [
                "-c", "exec 2>\"$0\"; exec \"$@\"", pipe, try DaemonProcess.program(), "--dir", place.path + "/larder",
                "--socket", socket, "--max-disk", "none",
            ])
        defer { daemon.killNow() }
        // The socket exists a moment before the daemon listens.
        while (try? SocketClient(socket)) == nil { nap() }
        let client = try SocketClient(socket)
        let text = String(repeating: "warning ", count: 100)
        for _ in 0..<1000 {
            #expect(
                try client.call(["EVAL", "redis.log(redis.LOG_WARNING, ARGV[1])", "0", text]) == Array("$-1\r\n".utf8))
        }
        #expect(try client.call("PING") == "+PONG\r\n")
        daemon.send(signal: SIGTERM)
        #expect(try daemon.waitForExit() == .exited(0))
    }
}
