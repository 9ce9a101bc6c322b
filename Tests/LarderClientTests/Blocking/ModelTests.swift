import LarderTestSupport
import Testing

@testable import LarderClient

private struct Book: Codable, Equatable {
    var name: String
    var price: Double
}

private struct Reader: Codable, Equatable {
    var book: Book
    var userName: String
}

/// Tests of calls with Codable models, and of batches of such calls.
@Suite struct ModelTests {
    private let reader = Reader(book: Book(name: "一本书", price: 18.5), userName: "王五")

    private func withClient(_ body: (BlockingLarderClient, FakeServer) throws -> Void) throws {
        let server = try FakeLarder.server()
        defer { server.stop() }
        try body(try BlockingLarderClient(socketPath: server.path), server)
    }

    @Test func storedModelsAreReturnedUnchanged() throws {
        try withClient { client, server in
            try client.set(reader, forKey: "reader")
            #expect(try client.value(Reader.self, forKey: "reader") == reader)
            #expect(try client.value(Reader.self, forKey: "none") == nil)
            try client.set(["a", "b"], forKey: "list", policy: .seconds(90))
            #expect(try client.value([String].self, forKey: "list") == ["a", "b"])
            #expect(
                server.requests.filter { $0[0] == "SET" }.map { Array($0.dropFirst(3)) } == [
                    ["CODEC", "json"], ["POLICY", "every:90", "CODEC", "json"],
                ])
        }
    }

    @Test func modelsAreStoredAsPlainJSON() throws {
        try withClient { client, _ in
            try client.set(Book(name: "x", price: 2), forKey: "book")
            let text = String(decoding: try client.bytes(forKey: "book") ?? [], as: UTF8.self)
            #expect([#"{"name":"x","price":2}"#, #"{"price":2,"name":"x"}"#].contains(text))
            try client.setBytes(Array(#" {"price":3.5,"name":"y","more":[]} "#.utf8), forKey: "book")
            #expect(try client.value(Book.self, forKey: "book") == Book(name: "y", price: 3.5))
            try client.set(["a/b"], forKey: "path")
            #expect(try client.bytes(forKey: "path") == Array(#"["a/b"]"#.utf8))
            try client.set(7, forKey: "number")
            #expect(try client.bytes(forKey: "number") == Array("7".utf8))
        }
    }

    @Test(arguments: [
        ("not JSON", "not well-formed"), ("", "not well-formed"), ("{}", "'book' is missing"),
        (#"{"book":{"name":"secret","price":"dear"},"userName":"u"}"#, "Double was expected at '.book.price'"),
        (#"{"book":null,"userName":"u"}"#, "null was found"), ("[]", "another type was found"),
    ])
    func aValueOfAnotherTypeIsAnErrorThatNamesTypeAndKey(value: String, reason: String) throws {
        try withClient { client, _ in
            try client.setBytes(Array(value.utf8), forKey: "reader")
            let error = #expect(throws: LarderClientError.self) { try client.value(Reader.self, forKey: "reader") }
            #expect(error?.code == .decode)
            #expect(error?.key == "reader")
            #expect(error?.underlying is DecodingError)
            let message = error?.message ?? ""
            #expect(message.contains("Reader") && message.contains(reason), "\(message)")
            #expect(!message.contains("secret") && !message.contains("dear"))
        }
    }

    @Test func aModelThatCannotBeEncodedIsNotSent() throws {
        try withClient { client, server in
            let error = #expect(throws: LarderClientError.self) { try client.set(Double.nan, forKey: "k") }
            #expect(error?.code == .encode)
            #expect(error?.key == "k")
            #expect(throws: LarderClientError.self) {
                try client.batch {
                    try $0.set(1, forKey: "a")
                    try $0.set(Double.infinity, forKey: "b")
                }
            }
            #expect(server.requests.isEmpty)
        }
    }

    @Test func severalModelsAreReadWithOneCommand() throws {
        try withClient { client, server in
            try client.set([(key: "a", value: 1), (key: "b", value: 2)])
            #expect(try client.values(Int.self, forKeys: ["a", "none", "b"]) == ["a": 1, "b": 2])
            #expect(try client.values(Int.self, forKeys: [String]()) == [:])
            #expect(
                server.requests == [
                    ["POLICY"], ["MSETEX", "2", "a", "1", "b", "2", "CODEC", "json"], ["MGET", "a", "none", "b"],
                ])
            try client.setBytes([0x78], forKey: "b")
            let error = #expect(throws: LarderClientError.self) { try client.values(Int.self, forKeys: ["a", "b"]) }
            #expect(error?.key == "b")
        }
    }

    @Test func batchesOfOneKindAreSentAsOneCommand() throws {
        try withClient { client, server in
            try client.batch {
                try $0.setBytes([0x77], forKey: "book", policy: .high)
                try $0.setBytes([0x78], forKey: "bytes", policy: .high)
                try $0.setBytes([0x79], forKey: "bytes", policy: .high)
            }
            #expect(
                server.requests == [
                    ["POLICY"],
                    [
                        "MSETEX", "3", "book", "w", "bytes", "x", "bytes", "y", "POLICY", "high", "CODEC", "raw",
                    ],
                ])
            #expect(try client.bytes(forKey: "bytes") == [0x79])
            try client.batch { batch in for key in ["book", "bytes"] { batch.remove(key) } }
            #expect(server.requests.last == ["DEL", "book", "bytes"])
            try client.batch { try $0.set(1, forKey: "one") }
            try client.batch { try $0.setBytes([0x31], forKey: "one") }
            #expect(server.requests.suffix(2) == [["SET", "one", "1", "CODEC", "json"], ["SET", "one", "1"]])
            try client.batch { batch in for key in ["book", "bytes"] { batch.remove(key) } }
            try client.batch { _ in }
            #expect(server.requests.last == ["DEL", "book", "bytes"])
        }
    }

    /// A batch with different kinds of changes is sent as a transaction, and the server's error is thrown.
    @Test func mixedBatchesAreSentAsTransactions() throws {
        try withClient { client, server in
            let error = #expect(throws: LarderClientError.self) {
                try client.batch {
                    try $0.set(1, forKey: "a")
                    $0.remove("b")
                }
            }
            #expect(error?.serverText == "ERR unknown command 'MULTI'")
            #expect(
                server.requests.dropFirst() == [
                    ["MULTI"], ["SET", "a", "1", "CODEC", "json"], ["DEL", "b"], ["EXEC"],
                ])
        }
    }

    private struct Stop: Error {}

    @Test func anAbandonedBatchSendsNothing() throws {
        try withClient { client, server in
            #expect(throws: Stop.self) {
                try client.batch {
                    try $0.set(1, forKey: "a")
                    throw Stop()
                }
            }
            #expect(server.requests.isEmpty)
        }
    }
}

/// Tests of calls that list databases, set policies or purge.
@Suite struct DatabaseTests {
    @Test func databasesPoliciesAndServerInfoAreReturned() throws {
        let server = try FakeLarder.server()
        defer { server.stop() }
        let client = try BlockingLarderClient(socketPath: server.path, database: "userdb")
        let databases = try client.databases()
        #expect(databases.map(\.name) == ["0", "userdb"])
        #expect(databases.map(\.policy) == ["lowest", "never"])
        #expect(databases.map(\.intervalMilliseconds) == [604_800_000, nil])
        #expect(databases.map(\.entries) == [3, 61_234])
        #expect(databases.map(\.bytes) == [120, 9_876_543])
        #expect(databases.map(\.state) == ["open", "closed"])
        #expect(try client.policy() == .every(90))
        try client.setPolicy(.every(milliseconds: 1_500) ?? .never)
        #expect(server.requests.last == ["POLICY", "every:1.500"])
        try client.select("other")
        #expect(server.requests.last == ["SELECT", "other"])
        #expect(try client.serverInfo().hasPrefix("# Server\r\n"))
        #expect(try client.serverInfo(section: "load").isEmpty == false)
        #expect(server.requests.last == ["INFO", "load"])
    }

    @Test func removeAllSendsPURGE() throws {
        let server = try FakeLarder.server()
        defer { server.stop() }
        let client = try BlockingLarderClient(socketPath: server.path)
        let result = try client.removeAll()
        #expect(result.entries == 3 && result.bytes == 120 && result.milliseconds == 1)
        try client.removeExpired()
        try client.remove(prefix: "user:")
        #expect(server.requests == [["PURGE"], ["PURGE", "EXPIRED"], ["PURGE", "PREFIX", "user:"]])
    }
}
