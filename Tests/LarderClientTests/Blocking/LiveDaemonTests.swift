import Larder
import LarderClient
import LarderPlatform
import LarderTestSupport
import Testing

private struct Book: Codable, Equatable {
    var name: String
    var price: Double
}

/// Tests of the blocking client with a real daemon.
@Suite struct LiveDaemonTests {
    private func withDaemon(_ body: (DaemonProcess) throws -> Void) throws {
        let daemon = try DaemonProcess()
        try body(daemon)
        #expect(try daemon.stop() == .exited(0))
    }

    @Test func modelsAreStoredWithTheirPolicy() throws {
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

    @Test func anEntryWithALifetimeOfOneMillisecondExpires() throws {
        try withDaemon { daemon in
            let client = try BlockingLarderClient(socketPath: daemon.socketPath)
            try client.setBytes([1], forKey: "k", policy: .after(.milliseconds(1)))
            while try client.contains("k") { nap() }
            #expect(try client.bytes(forKey: "k") == nil)
            #expect(try client.info(forKey: "k") == nil)
            #expect(try client.timeToLive(forKey: "k") == nil)
        }
    }

    @Test("a blocking client stores, lists and removes many keys") func storedKeysAreListedAndRemoved() throws {
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

    @Test func valuesOfAnySizeAreReturnedUnchanged() throws {
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

    /// After the daemon was killed and restarted, acknowledged writes still exist, and the same client reconnects.
    @Test(arguments: [SIGTERM, SIGKILL])
    func aClientSurvivesADaemonRestart(signal: CInt) throws {
        let place = try TemporaryDirectory(inMemory: true)
        let daemon = try DaemonProcess(in: place)
        let client = try BlockingLarderClient(socketPath: daemon.socketPath, database: "books")
        try client.setBytes([1], forKey: "k")
        daemon.process.send(signal: signal)
        #expect(try daemon.process.waitForExit() == (signal == SIGTERM ? .exited(0) : .killed(signal: SIGKILL)))
        let error = #expect(throws: LarderClientError.self) { try client.bytes(forKey: "k") }
        #expect(error?.code == .noDaemon)
        let next = try DaemonProcess(in: place)
        #expect(try client.bytes(forKey: "k") == [1])
        #expect(try client.command("DBSIZE") == .integer(1))
        try next.stop()
    }

    @Test func rawCommandsCanReadFromASnapshot() throws {
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

    /// Entries stored by the client can be read by the library in the same larder, and vice versa.
    @Test func clientAndLibraryReadEachOthersEntries() throws {
        let place = try TemporaryDirectory(inMemory: true)
        let book = Book(name: "a/b \"本\"", price: 18.5)
        do {
            let cache = try Cache(named: "books", directory: place.path + "/larder")
            try cache.set(book, forKey: "library")
            cache.close()
        }
        let daemon = try DaemonProcess(in: place)
        let client = try BlockingLarderClient(socketPath: daemon.socketPath, database: "books")
        #expect(try client.value(Book.self, forKey: "library") == book)
        #expect(try client.info(forKey: "library")?.codec == .json)
        try client.set(book, forKey: "client", policy: .never)
        try client.batch { try $0.set(book, forKey: "batch") }
        try client.set(["a/b"], forKey: "bytes")
        #expect(try daemon.stop() == .exited(0))
        let cache = try Cache(named: "books", directory: daemon.larder)
        #expect(try cache.value(Book.self, forKey: "client") == book)
        #expect(try cache.value(Book.self, forKey: "batch") == book)
        #expect(try cache.bytes(forKey: "bytes") == Array(#"["a/b"]"#.utf8))
        cache.close()
    }
}
