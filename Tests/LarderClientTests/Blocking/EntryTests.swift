import LarderTestSupport
import Testing

@testable import LarderClient

/// Tests of calls that read and write entries as bytes: their requests and results.
@Suite struct EntryTests {
    private func withClient(_ body: (BlockingLarderClient, FakeServer) throws -> Void) throws {
        let server = try FakeLarder.server()
        defer { server.stop() }
        try body(try BlockingLarderClient(socketPath: server.path), server)
    }

    @Test func storedBytesAreReturnedUnchanged() throws {
        try withClient { client, server in
            let bytes: [UInt8] = [0, 0xFF, 13, 10, 0]
            try client.setBytes(bytes, forKey: "k")
            #expect(try client.bytes(forKey: "k") == bytes)
            try client.setBytes([], forKey: "一本书")
            #expect(try client.bytes(forKey: "一本书") == [])
            #expect(try client.bytes(forKey: "none") == nil)
            #expect(server.requests[2] == ["SET", "一本书", ""])
        }
    }

    @Test func thePolicyIsSentWithTheEntry() throws {
        try withClient { client, server in
            try client.setBytes([1], forKey: "a", policy: .high)
            try client.setBytes([1], forKey: "a", policy: .seconds(0.5))
            try client.setBytes([1], forKey: "a", policy: .never)
            #expect(
                server.requests.map { $0.suffix(2) } == [
                    ["POLICY", "high"], ["POLICY", "every:0.500"], ["POLICY", "never"],
                ])
        }
    }

    @Test func removeSendsOneCommandAndReturnsTheCount() throws {
        try withClient { client, server in
            try client.setBytes([1], forKey: "a")
            try client.setBytes([1], forKey: "b")
            #expect(try client.remove(["a", "b", "none"]) == 2)
            #expect(try client.remove("a") == false)
            #expect(try client.remove([String]()) == 0)
            #expect(server.requests.suffix(2) == [["DEL", "a", "b", "none"], ["DEL", "a"]])
        }
    }

    @Test func containsAndTimeToLiveReportWhetherAKeyExists() throws {
        try withClient { client, _ in
            try client.setBytes([1], forKey: "a")
            try client.setBytes([1], forKey: "own")
            #expect(try client.contains("a"))
            #expect(try !client.contains("none"))
            #expect(try client.timeToLive(forKey: "a") == .never)
            #expect(try client.timeToLive(forKey: "own") == .milliseconds(12_345))
            #expect(try client.timeToLive(forKey: "none") == nil)
        }
    }

    @Test func infoReturnsTheFieldsOfMETA() throws {
        try withClient { client, _ in
            try client.setBytes([1, 2, 3], forKey: "a")
            try client.setBytes([], forKey: "own")
            let governed = try #require(try client.info(forKey: "a"))
            #expect(governed.storedAtMilliseconds == FakeLarder.storedAt)
            #expect(governed.ageMilliseconds == 1_500)
            #expect(governed.deadlineMilliseconds == nil)
            #expect(governed.timeToLiveMilliseconds == nil)
            #expect(governed.rule == .governed)
            #expect(governed.databasePolicy == .never)
            #expect(governed.byteCount == 3)
            #expect(governed.codec == .json)
            #expect(!governed.isExpired)
            let own = try #require(try client.info(forKey: "own"))
            #expect(own.deadlineMilliseconds == FakeLarder.storedAt + 13_845)
            #expect(own.timeToLiveMilliseconds == 12_345)
            #expect(own.rule == .own(FakeLarder.storedAt + 13_845))
            #expect(try client.info(forKey: "none") == nil)
        }
    }

    @Test func infoAcceptsTheReplyOfRESP2() throws {
        let fields = [
            "stored-at", ":1", "age", ":2", "deadline", ":-1", "ttl", ":-1", "rule", "never", "policy", "low", "size",
            ":0", "codec", "raw", "state", "fresh",
        ]
        let answer = fields.map { $0.hasPrefix(":") ? $0 + "\r\n" : "$\($0.utf8.count)\r\n\($0)\r\n" }.joined()
        let server = try FakeServer { $0.name == "META" ? .text("*18\r\n" + answer) : .standard }
        defer { server.stop() }
        let info = try #require(try BlockingLarderClient(socketPath: server.path).info(forKey: "k"))
        #expect(info.rule == .ownNever)
        #expect(info.codec == .raw)
        #expect(info.databasePolicy == .low)
    }

    @Test func keysReturnsTheKeysOfAllSCANReplies() throws {
        try withClient { client, server in
            #expect(try client.keys() == [])
            for number in 0..<7 { try client.setBytes([1], forKey: "key:\(number)") }
            try client.setBytes([1], forKey: "other")
            #expect(try client.keys().sorted() == (0..<7).map { "key:\($0)" } + ["other"])
            #expect(try client.keys(matching: "o*") == ["other"])
            #expect(server.requests.last?.prefix(4) == ["SCAN", "6", "MATCH", "o*"])
        }
    }

    @Test func theEnumerationOfKeysStopsIfTheClosureRequestsIt() throws {
        try withClient { client, server in
            for number in 0..<7 { try client.setBytes([1], forKey: "key:\(number)") }
            var seen: [String] = []
            try client.forEachKey { key in
                seen.append(String(decoding: key, as: UTF8.self))
                // The closure may call the client.
                let isThere = try client.contains(seen.last ?? "")
                #expect(isThere)
                return seen.count < 3
            }
            #expect(seen == ["key:0", "key:1", "key:2"])
            #expect(server.requests.count { $0.first == "SCAN" } == 2)
        }
    }

    @Test func keysThatAreNotUTF8AreReturnedOnlyAsBytes() throws {
        try withClient { client, _ in
            try client.command(bytes: [Array("SET".utf8), [0xFF, 0x61], [1]])
            try client.command("SET", "a", "1")
            #expect(try client.keys() == ["a"])
            try client.remove("a")
            var seen: [[UInt8]] = []
            try client.forEachKey { key in
                seen.append(key)
                return true
            }
            #expect(seen == [[0xFF, 0x61]])
        }
    }

    /// An unexpected reply of a server leads to an error, and not to a trap.
    @Test(arguments: [
        ":1\r\n", "+OK\r\n", "_\r\n", "*0\r\n", "*1\r\n_\r\n", "%1\r\n+a\r\n+b\r\n", "*2\r\n:1\r\n*1\r\n_\r\n",
    ])
    func repliesOfUnexpectedTypesAreProtocolViolations(answer: String) throws {
        let server = try FakeServer { ["HELLO", "SELECT"].contains($0.name) ? .standard : .text(answer) }
        defer { server.stop() }
        let client = try BlockingLarderClient(socketPath: server.path)
        let calls: [(String, () throws -> Void)] = [
            ("+", { try client.ping() }),
            ("+", { _ = try client.setBytes([], forKey: "k") }),
            ("_", { _ = try client.bytes(forKey: "k") }),
            (":", { _ = try client.remove("k") }),
            (":", { _ = try client.contains("k") }),
            (":", { _ = try client.timeToLive(forKey: "k") }),
            ("_", { _ = try client.info(forKey: "k") }),
            ("-", { _ = try client.keys() }),
            ("*0", { _ = try client.databases() }),
            ("-", { _ = try client.policy() }),
            ("+", { try client.setPolicy(.low) }),
            ("-", { _ = try client.removeAll() }),
            ("-", { _ = try client.serverInfo() }),
        ]
        for (expected, call) in calls where !answer.hasPrefix(expected) {
            do {
                try call()
                // Only INFO throws no error, because it accepts any text.
                #expect(answer.hasPrefix("+"))
            } catch let error as LarderClientError {
                #expect(error.code == .protocolViolation)
            }
        }
    }
}

/// Tests of update policies. The client and the engine use the same type for them.
@Suite struct ClientPolicyTests {
    @Test(arguments: [
        "highest", "HIGH", "middle", "low", "lowest", "never", "90", "0.5", "every:90", "every:0.001", "604800", "",
        "x", "-1", "0", "inf", "nan", "0x10", "1e3", "every:", "every 90", "9000000000", "9000000001", " 1", "1.",
        ".5", "...", "0.0004",
    ])
    func theDescriptionOfAPolicyCanBeParsed(word: String) {
        let policy = UpdatePolicy(word)
        let engines = UpdatePolicy(word)
        #expect((policy == nil) == (engines == nil))
        #expect(policy?.intervalMilliseconds == engines?.intervalMilliseconds)
        #expect(policy?.description == engines?.description)
        if let policy { #expect(UpdatePolicy(policy.description) == policy) }
    }

    @Test func policyIntervalsOutOfRangeAreNil() {
        #expect(UpdatePolicy.every(milliseconds: UpdatePolicy.longestMilliseconds + 1) == nil)
        #expect(UpdatePolicy.every(milliseconds: 0) == nil)
        #expect(UpdatePolicy.every(milliseconds: .max) == nil)
        #expect(UpdatePolicy.every(.infinity) == nil)
        #expect(UpdatePolicy.every(.nan) == nil)
        #expect(UpdatePolicy.every(-1) == nil)
        #expect(UpdatePolicy.every(0.5)?.intervalMilliseconds == 500)
        #expect(UpdatePolicy.every(milliseconds: 1)?.description == "every:0.001")
        #expect(UpdatePolicy.every(milliseconds: 60_000) == .high)
    }
}

/// Tests of the default path of the socket.
@Suite struct DefaultSocketTests {
    @Test func theDefaultSocketPathDependsOnTheEnvironment() {
        let runtime = ["XDG_RUNTIME_DIR": "/run/user/7"]
        let named = ["XDG_RUNTIME_DIR": "/run/user/7", "LARDER_SOCKET": "/x/s"]
        let empty = ["XDG_RUNTIME_DIR": "", "LARDER_SOCKET": ""]
        #expect(DefaultSocket.path(environment: { named[$0] }, userID: 7) == "/x/s")
        #expect(DefaultSocket.path(environment: { named[$0] }, userID: 0) == "/x/s")
        #expect(DefaultSocket.path(environment: { runtime[$0] }, userID: 0) == "/run/larder/larder.sock")
        #expect(DefaultSocket.path(environment: { runtime[$0] }, userID: 7) == "/run/user/7/larder/larder.sock")
        #expect(DefaultSocket.path(environment: { empty[$0] }, userID: 7) == "/tmp/larder-7/larder.sock")
        #expect(DefaultSocket.path(environment: { _ in "run/7" }, userID: 0) == "run/7")
        let relative = ["XDG_RUNTIME_DIR": "run/7"]
        #expect(DefaultSocket.path(environment: { relative[$0] }, userID: 7) == "/tmp/larder-7/larder.sock")
        #expect(DefaultSocket.path(environment: { _ in nil }, userID: 7) == "/tmp/larder-7/larder.sock")
    }

    /// If a user has no daemon of their own, clients use the machine's daemon.
    @Test func clientsUseTheSystemSocketIfThereIsNoOwnOne() {
        func path(_ environment: [String: String], _ present: Set<String>) -> String {
            DefaultSocket.clientPath(environment: { environment[$0] }, userID: 7, exists: present.contains)
        }
        let own = "/tmp/larder-7/larder.sock"
        #expect(path([:], [DefaultSocket.system]) == DefaultSocket.system)
        #expect(path([:], [DefaultSocket.system, own]) == own)
        #expect(path([:], []) == own)
        #expect(path(["LARDER_SOCKET": "/x/s"], [DefaultSocket.system]) == "/x/s")
    }

    @Test func daemonAndClientsHaveTheSameDefaultSocketPath() {
        #expect([DefaultSocket.path, DefaultSocket.system].contains(LarderClient.defaultSocketPath))
    }
}
