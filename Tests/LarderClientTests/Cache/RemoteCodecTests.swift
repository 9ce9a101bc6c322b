import Foundation
import LarderTestSupport
import Testing

@testable import LarderClient

private struct Book: Codable, Equatable, Sendable {
    var name: String
    var price: Double
}

/// Reversed JSON: an encoding that no other codec can read.
private let reversed = ModelCodec.custom(
    encode: { Array(try JSONEncoder().encode($0).reversed()) },
    decode: { try JSONDecoder().decode($0, from: Data($1.reversed())) })

private func snakeCase() -> ModelCodec {
    let (encoder, decoder) = (JSONEncoder(), JSONDecoder())
    encoder.keyEncodingStrategy = .convertToSnakeCase
    decoder.keyDecodingStrategy = .convertFromSnakeCase
    return .json(encoder: encoder, decoder: decoder)
}

private struct Long: Codable, Equatable, Sendable { var longName: Int }

/// Tests of the library's codecs in caches of the daemon: the stored bytes, the codec recorded with them, and which
/// codecs can read the entries of other codecs.
@Suite(.timeLimit(.minutes(10))) struct RemoteCodecTests {
    private let book = Book(name: "一本书", price: 18.5)

    @Test(arguments: LiveServer.allCases)
    func everyCodecReadsItsOwnEntries(server: LiveServer) async throws {
        try await server.run { client in
            for (name, codec) in [("json", .json), ("plist", .propertyList), ("custom", reversed)]
                as [(String, ModelCodec)]
            {
                let books = client.cache(of: Book.self, codec: codec)
                try await books.set(book, forKey: name)
                #expect(try await books.value(forKey: name) == book)
                try await books.set(["a": book, "b": book].map { ($0, $1) }, policy: .high)
                try await books.batch {
                    try $0.set(book, forKey: "c")
                    $0.remove("b")
                }
                #expect(try await books.values(forKeys: ["a", "b", "c"]) == ["a": book, "c": book])
                let read = try await books.transaction(watching: ["a"]) { transaction in
                    try transaction.set(book, forKey: "d")
                    return try await transaction.value(forKey: "a")
                }
                #expect(read == book)
                #expect(try await books.value(forKey: "d") == book)
                guard server != .redis else { continue }
                for key in [name, "a", "c", "d"] {
                    #expect(try await books.info(forKey: key)?.codec.description == name, "\(key)")
                }
                let own = try #require(try await books.info(forKey: "a"))
                #expect(own.rule == own.deadlineMilliseconds.map { .own($0) })
                #expect(try await books.info(forKey: "c")?.rule == .governed)
            }
            let longs = client.cache(of: Long.self, codec: snakeCase())
            try await longs.set(Long(longName: 1), forKey: "long")
            #expect(try await longs.bytes(forKey: "long") == Array(#"{"long_name":1}"#.utf8))
            #expect(try await longs.value(forKey: "long") == Long(longName: 1))
        }
    }

    @Test(arguments: LiveServer.allCases)
    func readsUseTheCodecOfTheEntryNotOfTheCache(server: LiveServer) async throws {
        try await server.run { client in
            let json = client.cache(of: Book.self)
            let list = client.cache(of: Book.self, codec: .propertyList)
            let custom = client.cache(of: Book.self, codec: reversed)
            try await json.set(book, forKey: "json")
            try await list.set(book, forKey: "plist")
            try await custom.set(book, forKey: "custom")
            for cache in [json, list] {
                #expect(try await cache.value(forKey: "json") == book)
                #expect(try await cache.value(forKey: "plist") == book)
                let error = await #expect(throws: LarderClientError.self) { try await cache.value(forKey: "custom") }
                #expect(error?.code == .decode)
                if server != .redis { #expect(error?.message.contains("custom codec") == true) }
            }
            if server != .redis {
                // The client must ask the daemon for the codec of each entry. (Redis stores no codecs.)
                #expect(try await custom.values(forKeys: ["json", "plist", "custom"]).count == 3)
                let read = try await custom.transaction(watching: ["json"]) { try await $0.value(forKey: "json") }
                #expect(read == book)
            }
        }
    }

    /// Bytes that another program has stored are read as text if they are UTF-8. Models are never read as text.
    @Test(arguments: LiveServer.allCases)
    func rawTextIsReadAsText(server: LiveServer) async throws {
        try await server.run { client in
            let texts = client.cache(of: String.self)
            try await client.command("SET", "greeting", "good morning")
            #expect(try await texts.value(forKey: "greeting") == "good morning")
            #expect(try await texts.values(forKeys: ["greeting"]) == ["greeting": "good morning"])
            #expect(try await client.cache(of: [UInt8].self).value(forKey: "greeting") == Array("good morning".utf8))
            let error = await #expect(throws: LarderClientError.self) {
                try await client.cache(of: Book.self).value(forKey: "greeting")
            }
            #expect(error?.code == .decode && error?.message.contains("bytes(forKey:)") == true)
            // A stored model is never returned as text.
            try await client.cache(of: Book.self).set(book, forKey: "book")
            if server != .redis {
                await #expect(throws: LarderClientError.self) { try await texts.value(forKey: "book") }
            }
            try await client.command(bytes: [Array("SET".utf8), Array("k".utf8), [0xFF]])
            await #expect(throws: LarderClientError.self) { try await texts.value(forKey: "k") }
        }
    }

    /// Every client stores bytes unchanged, with the codec raw, and also reads bytes that were stored as JSON.
    @Test func bytesAreStoredUnchanged() async throws {
        let daemon = try DaemonProcess()
        let client = try await LarderClient.connect(
            socketPath: daemon.socketPath, options: .init(nearCache: NearCacheOptions()))
        let blocking = try BlockingLarderClient(socketPath: daemon.socketPath)
        // Some of these raw bytes look like `Data`, `[UInt8]` or nil encoded as JSON.
        for bytes in [[0, 255, 1], Array("\"AAAA\"".utf8), Array("[1,2]".utf8), Array("null".utf8), []] as [[UInt8]] {
            let data = client.cache(of: Data.self)
            let arrays = client.cache(of: [UInt8].self)
            let optionals = client.cache(of: Data?.self)
            try await data.set(Data(bytes), forKey: "data")
            try await arrays.set(bytes, forKey: "array")
            try await optionals.set(Data(bytes), forKey: "optional")
            try await arrays.batch { try $0.set(bytes, forKey: "batch") }
            #expect(try await arrays.setIfAbsent(bytes, forKey: "absent"))
            try blocking.set(Data(bytes), forKey: "blocking")
            try blocking.batch { try $0.set(bytes, forKey: "blocking batch") }
            for key in ["data", "array", "optional", "batch", "absent", "blocking", "blocking batch"] {
                #expect(try await data.bytes(forKey: key) == bytes, "\(key)")
                #expect(try await data.info(forKey: key)?.codec == .raw, "\(key)")
                for _ in 0..<2 {
                    #expect(try await data.value(forKey: key) == Data(bytes), "\(key)")
                    #expect(try await arrays.values(forKeys: [key]) == [key: bytes], "\(key)")
                    #expect(try await optionals.value(forKey: key) == .some(Data(bytes)), "\(key)")
                }
                #expect(try blocking.value(Data.self, forKey: key) == Data(bytes), "\(key)")
            }
            let json = client.cache(of: Data.self, codec: .json)
            try await json.set(Data(bytes), forKey: "json")
            #expect(try await json.info(forKey: "json")?.codec == .json)
            #expect(try await data.value(forKey: "json") == Data(bytes))
            #expect(try blocking.value(Data.self, forKey: "json") == Data(bytes))
            try await arrays.removeAll()
        }
        client.close()
    }

    @Test func aStoredNilDiffersFromAMissingKey() async throws {
        let daemon = try DaemonProcess()
        let client = try await LarderClient.connect(
            socketPath: daemon.socketPath, options: .init(nearCache: NearCacheOptions()))
        let numbers = client.cache(of: Int?.self)
        try await numbers.set(nil, forKey: "none")
        for _ in 0..<2 {
            #expect(try await numbers.value(forKey: "none") == .some(.none))
            #expect(try await numbers.value(forKey: "absent") == .none)
            #expect(try await numbers.values(forKeys: ["none", "absent"]) == ["none": .none])
        }
        let blocking = try BlockingLarderClient(socketPath: daemon.socketPath)
        #expect(try blocking.value(Int?.self, forKey: "none") == .some(.none))
        #expect(try blocking.value(Int?.self, forKey: "absent") == .none)
        client.close()
    }

    /// The near cache returns one decoded value to several readers, so it keeps no objects.
    @Test func nearCacheReadsDoNotShareObjects() async throws {
        final class Note: Codable, Sendable {
            let text: String
            init(_ text: String) { self.text = text }
        }
        let daemon = try DaemonProcess()
        let client = try await LarderClient.connect(
            socketPath: daemon.socketPath, options: .init(nearCache: NearCacheOptions()))
        let notes = client.cache(of: [Note].self)
        try await notes.set([Note("a")], forKey: "k")
        let first = try await notes.value(forKey: "k")
        let second = try await notes.value(forKey: "k")
        #expect(first?.first?.text == "a" && first?.first !== second?.first)
        client.close()
    }

    @Test func theNearCacheDistinguishesCodecs() async throws {
        try await LiveServer.larderd.run(.init(nearCache: .init())) { client in
            let once = ModelCodec.custom(
                encode: { _ in [1] }, decode: { _, bytes in Int(bytes.first ?? 0) })
            let twice = ModelCodec.custom(
                encode: { _ in [1] }, decode: { _, bytes in Int(bytes.first ?? 0) * 2 })
            try await client.cache(of: Int.self, codec: once).set(1, forKey: "k")
            for _ in 0..<3 {
                #expect(try await client.cache(of: Int.self, codec: once).value(forKey: "k") == 1)
                #expect(try await client.cache(of: Int.self, codec: twice).value(forKey: "k") == 2)
            }
            #expect(try await client.cache(of: Int.self, codec: twice).value(forKey: "k") == 2)
            #expect(client.nearCacheStatistics()?.hits == 1)
        }
    }

    @Test(arguments: LiveServer.allCases)
    func theBlockingClientSupportsCodecs(server: LiveServer) throws {
        try server.run { path in
            let list = try BlockingLarderClient(socketPath: path, codec: .propertyList)
            let json = try BlockingLarderClient(socketPath: path)
            try list.set(book, forKey: "plist")
            try json.set(book, forKey: "json")
            try list.batch {
                try $0.set(book, forKey: "a", policy: .high)
                try $0.set(book, forKey: "b", policy: .high)
            }
            for client in [list, json] {
                #expect(
                    try client.values(Book.self, forKeys: ["plist", "json", "a", "b"]).values.allSatisfy { $0 == book })
            }
            #expect(try json.bytes(forKey: "plist")?.starts(with: "bplist".utf8) == true)
            try json.command("SET", "greeting", "hello")
            #expect(try json.value(String.self, forKey: "greeting") == "hello")
            guard server != .redis else { return }
            #expect(try list.info(forKey: "b")?.codec == .propertyList)
        }
    }

    /// A batch applies writes and removals in one step and in their order.
    @Test(arguments: LiveServer.allCases)
    func aBlockingBatchSetsAndRemoves(server: LiveServer) throws {
        try server.run { path in
            let client = try BlockingLarderClient(socketPath: path)
            try client.set(1, forKey: "old")
            try client.batch {
                try $0.set(2, forKey: "new", policy: .high)
                $0.remove("old")
                $0.remove("gone")
                try $0.set(3, forKey: "gone")
                try $0.setBytes([1], forKey: "raw")
            }
            #expect(try client.value(Int.self, forKey: "new") == 2)
            #expect(try client.value(Int.self, forKey: "gone") == 3)
            #expect(try !client.contains("old"))
            guard case .milliseconds(let left) = try client.timeToLive(forKey: "new") else {
                Issue.record("no deadline")
                return
            }
            #expect(left <= 60_000)
        }
    }
}
