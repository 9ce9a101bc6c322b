import Larder
import LarderClient
import TestSupport
import Testing

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#else
    import Darwin
#endif

/// larderd as a process, over a larder in a directory of its own.
private final class Daemon {
    let directory: TemporaryDirectory
    let socketPath: String
    private var process: pid_t?
    /// What it writes to standard error comes here. Open as long as it runs: a daemon without readers of its log is not
    /// what is tested.
    private var log: CInt?

    init() throws {
        directory = try TemporaryDirectory()
        socketPath = directory.path + "/s"
    }

    deinit { _ = try? stop(SIGKILL) }

    /// Starts it and waits until it says that it is ready.
    func start() throws {
        var ends: [CInt] = [0, 0]
        guard pipe(&ends) == 0 else { throw SystemCallFailure(call: "pipe", number: errno) }
        log = ends[0]
        // Neither for other processes that tests start meanwhile; the daemon gets it as its standard error.
        for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
        var actions = posix_spawn_file_actions_t.empty
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        posix_spawn_file_actions_adddup2(&actions, ends[1], STDERR_FILENO)
        let words = ["--dir", directory.path + "/larder", "--socket", socketPath]
        process = try Programs.spawn("larderd", words.map { Array($0.utf8) }, &actions)
        close(ends[1])
        var text: [UInt8] = []
        var piece = [UInt8](repeating: 0, count: 4096)
        while !String(decoding: text, as: UTF8.self).contains(" ready: ") {
            let count = read(ends[0], &piece, piece.count)
            guard count > 0 else {
                Issue.record("larderd did not start: \(String(decoding: text, as: UTF8.self))")
                throw SystemCallFailure(call: "larderd", number: 0)
            }
            text.append(contentsOf: piece[..<count])
        }
    }

    /// Ends it with a signal and waits for its end. Its exit code, or 128 and the number of the signal.
    @discardableResult
    func stop(_ signal: CInt) throws -> CInt? {
        guard let process else { return nil }
        self.process = nil
        kill(process, signal)
        defer {
            if let log { close(log) }
            log = nil
        }
        return try Programs.wait(for: process)
    }
}

private struct Book: Codable, Equatable {
    var name: String
    var price: Double
}

/// The client and larderctl with the daemon itself.
@Suite struct LiveDaemonTests {
    private func withDaemon(_ body: (Daemon) throws -> Void) throws {
        let daemon = try Daemon()
        try daemon.start()
        try body(daemon)
        #expect(try daemon.stop(SIGTERM) == 0)
    }

    @Test func modelsPoliciesAndMeta() throws {
        try withDaemon { daemon in
            let client = try BlockingLarderClient(socketPath: daemon.socketPath, database: "books")
            try client.ping()
            let book = Book(name: "一本书", price: 18.5)
            try client.set(book, forKey: "governed")
            try client.set(book, forKey: "own", policy: .seconds(90))
            try client.set(book, forKey: "never", policy: .never)
            #expect(try client.value(Book.self, forKey: "governed") == book)
            #expect(try client.value(Book.self, forKey: "none") == nil)

            let governed = try #require(try client.info(forKey: "governed"))
            #expect(governed.rule == .governed && governed.codec == .json)
            #expect(governed.deadlineMilliseconds == governed.storedAtMilliseconds + 604_800_000)
            #expect(governed.byteCount == (try client.bytes(forKey: "governed")?.count))
            let own = try #require(try client.info(forKey: "own"))
            #expect(own.rule == .own(own.storedAtMilliseconds + 90_000))
            #expect(own.deadlineMilliseconds == own.storedAtMilliseconds + 90_000)
            #expect(try client.info(forKey: "never")?.rule == .ownNever)
            #expect(try client.timeToLive(forKey: "never") == .never)

            #expect(try client.policy() == .lowest)
            try client.setPolicy(.every(0.5) ?? .never)
            #expect(try client.policy() == .every(milliseconds: 500))
            #expect(try client.info(forKey: "own")?.databasePolicy == .every(0.5))
            #expect(try client.databases().map(\.name).contains("books"))
        }
    }

    @Test func anEntryOfAnInstantIsSoonGone() throws {
        try withDaemon { daemon in
            let client = try BlockingLarderClient(socketPath: daemon.socketPath)
            try client.setBytes([1], forKey: "k", policy: .after(.milliseconds(1)))
            while try client.contains("k") {}
            #expect(try client.bytes(forKey: "k") == nil)
            #expect(try client.info(forKey: "k") == nil)
            #expect(try client.timeToLive(forKey: "k") == nil)
        }
    }

    @Test func batchesKeysAndPurging() throws {
        try withDaemon { daemon in
            let client = try BlockingLarderClient(socketPath: daemon.socketPath)
            try client.batch { batch in
                for number in 0..<3_000 { try batch.setBytes([1], forKey: "key:\(number)") }
            }
            try client.set([(key: "a", value: 1), (key: "b", value: 2)])
            #expect(try client.values(Int.self, forKeys: ["a", "none", "b"]) == ["a": 1, "b": 2])
            #expect(try client.keys().count == 3_002)
            #expect(Set(try client.keys(matching: "key:*")) == Set((0..<3_000).map { "key:\($0)" }))
            #expect(try client.remove(prefix: "key:1").entries == 1_111)
            #expect(try client.remove(["a", "none"]) == 1)
            try client.batch { batch in for key in ["key:0", "key:2", "none"] { batch.remove(key) } }
            #expect(try client.keys().count == 1_888)
            #expect(try client.removeAll().entries == 1_888)
            #expect(try client.keys() == [])
        }
    }

    @Test func valuesOfEverySizeAndEveryByte() throws {
        try withDaemon { daemon in
            let client = try BlockingLarderClient(socketPath: daemon.socketPath)
            var generator = SeededGenerator(seed: testSeed())
            for size in [0, 1, 15, 16, 17, 4_095, 65_536, 1_000_001, 5_000_000] {
                let bytes = generator.bytes(count: size)
                try client.setBytes(bytes, forKey: "k\(size)")
                #expect(try client.bytes(forKey: "k\(size)") == bytes)
            }
        }
    }

    /// A daemon that was killed and started again: what it acknowledged is there, and the same client finds it.
    @Test(arguments: [SIGTERM, SIGKILL])
    func aClientOutlivesItsDaemon(signal: CInt) throws {
        let daemon = try Daemon()
        try daemon.start()
        let client = try BlockingLarderClient(socketPath: daemon.socketPath, database: "books")
        try client.setBytes([1], forKey: "k")
        #expect(try daemon.stop(signal) == (signal == SIGTERM ? 0 : 128 + SIGKILL))
        let error = #expect(throws: LarderClientError.self) { try client.bytes(forKey: "k") }
        #expect(error?.code == .noDaemon)
        try daemon.start()
        #expect(try client.bytes(forKey: "k") == [1])
        #expect(try client.command("DBSIZE") == .integer(1))
    }

    @Test func aSnapshotThroughRawCommands() throws {
        try withDaemon { daemon in
            let (reader, writer) = (
                try BlockingLarderClient(socketPath: daemon.socketPath),
                try BlockingLarderClient(socketPath: daemon.socketPath)
            )
            try writer.setBytes([1], forKey: "k")
            #expect(try reader.command("SNAPSHOT", "OPEN") == .simpleString("OK"))
            try writer.setBytes([2], forKey: "k")
            #expect(try reader.bytes(forKey: "k") == [1])
            #expect(try reader.command("SNAPSHOT", "CLOSE") == .simpleString("OK"))
            #expect(try reader.bytes(forKey: "k") == [2])
        }
    }

    @Test func theCommandLine() throws {
        try withDaemon { daemon in
            let larderctl = try Larderctl(socketPath: daemon.socketPath)
            #expect(try larderctl("ping").text == "PONG\n")
            #expect(try larderctl("set", "k", "v", "--policy", "never").text == "OK\n")
            #expect(try larderctl("get", "k").text == "v")
            #expect(try larderctl("ttl", "k").text == "never\n")
            #expect(try larderctl("meta", "k").text.contains("\nrule       its own: it never expires\n"))
            #expect(try larderctl("keys", "--json").text == #"["k"]"# + "\n")
            #expect(try larderctl("policy").text == "lowest, 7 days\n")
            #expect(try larderctl("policy", "90").text == "OK\n")
            #expect(try larderctl("policy", "--json").text == #"{"policy":"every:90","interval":90000}"# + "\n")
            #expect(try larderctl("databases").text.hasPrefix("NAME  POLICY    ENTRIES"))
            #expect(try larderctl("stats", "server", "--json").text.hasPrefix(#"{"server":{"#))
            #expect(try larderctl("SET", "k", "w", "GET").text == "v\n")
            #expect(try larderctl("--json", "META", "none").exitCode == 1)
            #expect(try larderctl("SET", "k").exitCode == 4)
            #expect(try larderctl("--database", "Bad Name", "get", "k").exitCode == 4)
            #expect(try larderctl("del", "k", "none").text == "1\n")
            #expect(try larderctl("get", "k").exitCode == 1)
            #expect(try larderctl("purge", "--json").text.hasPrefix(#"{"entries":0,"bytes":"#))
        }
        let daemon = try Daemon()
        try daemon.start()
        #expect(try Larderctl(socketPath: daemon.socketPath)("SHUTDOWN").exitCode == 0)
        // The signal comes too late or finds it ending: either way it ends in good order.
        #expect(try daemon.stop(0) == 0)
        #expect(try Larderctl(socketPath: daemon.socketPath)("ping").exitCode == 3)
    }

    /// What the client stores, the library reads in the same larder, and the other way round.
    @Test func theClientAndTheLibraryReadEachOther() throws {
        let daemon = try Daemon()
        let book = Book(name: "a/b \"本\"", price: 18.5)
        do {
            let cache = try Cache(named: "books", directory: daemon.directory.path + "/larder")
            try cache.set(book, forKey: "library")
            cache.close()
        }
        try daemon.start()
        let client = try BlockingLarderClient(socketPath: daemon.socketPath, database: "books")
        #expect(try client.value(Book.self, forKey: "library") == book)
        #expect(try client.info(forKey: "library")?.codec == .json)
        try client.set(book, forKey: "client", policy: .never)
        try client.batch { try $0.set(book, forKey: "batch") }
        try client.set(["a/b"], forKey: "bytes")
        #expect(try daemon.stop(SIGTERM) == 0)
        let cache = try Cache(named: "books", directory: daemon.directory.path + "/larder")
        #expect(try cache.value(Book.self, forKey: "client") == book)
        #expect(try cache.value(Book.self, forKey: "batch") == book)
        #expect(try cache.bytes(forKey: "bytes") == Array(#"["a/b"]"#.utf8))
        cache.close()
    }

    @Test func everyCommandHasHelp() throws {
        let larderctl = try Larderctl(socketPath: nil)
        let overview = try larderctl("help").text
        let commands = ["GET", "SET", "SCAN", "EXPIRE", "HELLO", "INFO", "META", "POLICY", "PURGE", "SNAPSHOT"]
        for command in commands {
            #expect(overview.contains(" \(command) ") || overview.contains(" \(command)\n"))
            let help = try larderctl("help", command)
            #expect(help.exitCode == 0)
            #expect(help.text.hasPrefix("usage: larderctl [OPTION…] \(command)"))
        }
    }
}
