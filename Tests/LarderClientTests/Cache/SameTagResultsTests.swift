import Larder
import LarderClient
import LarderTestSupport
import Testing

/// Tests that the library and both clients return the same results for calls with tags.
@Suite(.timeLimit(.minutes(10))) struct SameTagResultsTests {
    /// The expected results of the calls below, for each client.
    private static let expected = [
        "[\"a\", \"b\"] [] nil", "[\"a\", \"b\"] 5", "[\"c\"] [\"d\"] [\"e\"] [\"f\"] [\"g\"] [\"h\"] [\"i\"]",
        "an entry can have at most 16 tags, not 17", "a tag must have 1 to 128 bytes, not 0",
        "a tag must not contain a NUL byte", "a tag must have 1 to 128 bytes, not 129", "false 1",
        "at most 1024 tags can be purged at once, not 1025", "all spellings of 'soft'", "1 nil 2", "nil nil 3",
    ]
    private static let bad = [
        (1...17).map { "\($0)" }, ["a", ""], ["a\0b"], [String(repeating: "ä", count: 64) + "x"],
    ]

    /// Returns the one of the expected texts that an error contains; the whole error if it contains none of them.
    private static func text(_ error: any Error) -> String {
        return expected.first { "\(error)".contains($0) } ?? "\(error)"
    }

    @Test(arguments: [false, true]) func tagsOfTheLibraryHaveTheExpectedResults(inMemory: Bool) throws {
        let directory = try TemporaryDirectory(inMemory: true)
        let cache = inMemory ? try Cache.inMemory() : try Cache(named: "a", directory: directory.path + "/larder")
        var said: [String] = []
        func tags(_ key: String) throws -> String { try cache.tags(forKey: key).map { "\($0)" } ?? "nil" }
        func number(_ key: String) throws -> String {
            try cache.value(Int.self, forKey: key).map { "\($0)" } ?? "nil"
        }
        try cache.set(1, forKey: "tagged", policy: .hours(1), tags: ["a", "b", "a"])
        try cache.set(1, forKey: "untagged")
        said.append("\(try tags("tagged")) \(try tags("untagged")) \(try tags("none"))")
        // None of these changes specifies tags, so each keeps the entry's tags.
        try cache.increment("tagged")
        try cache.set(3, forKey: "tagged", policy: .keep)
        try cache.update(Int.self, forKey: "tagged") { $0 = ($0 ?? 0) + 1 }
        try cache.update(Int.self, forKey: "tagged", policy: .hours(3)) { $0 = ($0 ?? 0) + 1 }
        try cache.touch("tagged", policy: .hours(2))
        said.append("\(try tags("tagged")) \(try number("tagged"))")
        try cache.setBytes([0x31], forKey: "c", tags: ["c"])
        _ = try cache.setIfAbsent(1, forKey: "d", tags: ["old"])
        _ = try cache.setIfPresent(1, forKey: "d", tags: ["d"])
        _ = try cache.setIfAbsent(1, forKey: "e", tags: ["old"])
        _ = try cache.replace(1, with: 2, forKey: "e", tags: ["e"])
        try cache.update(Int.self, forKey: "f", tags: ["f"]) { $0 = 1 }
        try cache.set(["g": 1, "g2": 1], tags: ["g"])
        try cache.batch { batch in
            try batch.set(1, forKey: "h", tags: ["h"])
            try batch.setBytes([0x31], forKey: "i", tags: ["i"])
            batch.remove("none")
        }
        var lists: [String] = []
        for key in ["c", "d", "e", "f", "g", "h", "i"] { lists.append(try tags(key)) }
        said.append(lists.joined(separator: " "))
        let batch = cache.makeBatch()
        try batch.set(1, forKey: "good", tags: ["good"])
        for bad in Self.bad {
            do {
                try cache.set(1, forKey: "bad", tags: bad)
            } catch {
                said.append(Self.text(error))
            }
            #expect(throws: (any Error).self) { try batch.set(1, forKey: "bad", tags: bad) }
        }
        said.append("\(try cache.contains("bad")) \(batch.count)")
        do {
            try cache.removeAll(tagged: (1...1025).map { "\($0)" })
        } catch {
            said.append(Self.text(error))
        }
        said.append("all spellings of 'soft'")
        try cache.removeAll(tagged: [])
        try cache.set(2, forKey: "soft", tags: ["soft"])
        try cache.removeAll(tagged: "d")
        said.append("\(try number("untagged")) \(try number("d")) \(try number("soft"))")
        try cache.set(3, forKey: "left", tags: ["SOFT"])
        try cache.removeAll(tagged: ["e", "soft"], soft: true)
        try cache.removeAll(tagged: ["a", "g", "soft"])
        said.append("\(try number("tagged")) \(try number("g2")) \(try number("left"))")
        #expect(said == Self.expected)
    }

    @Test func tagOperationsOfTheBlockingClientReturnTheExpectedResults() throws {
        let daemon = try DaemonProcess()
        let cache = try BlockingLarderClient(socketPath: daemon.socketPath, database: "a")
        var said: [String] = []
        func tags(_ key: String) throws -> String { try cache.tags(forKey: key).map { "\($0)" } ?? "nil" }
        func number(_ key: String) throws -> String {
            try cache.value(Int.self, forKey: key).map { "\($0)" } ?? "nil"
        }
        try cache.set(1, forKey: "tagged", policy: .hours(1), tags: ["a", "b", "a"])
        try cache.set(1, forKey: "untagged")
        said.append("\(try tags("tagged")) \(try tags("untagged")) \(try tags("none"))")
        // None of these changes specifies tags, so each keeps the entry's tags.
        try cache.increment("tagged")
        try cache.set(3, forKey: "tagged", policy: .keep)
        try cache.update(Int.self, forKey: "tagged") { $0 = ($0 ?? 0) + 1 }
        try cache.update(Int.self, forKey: "tagged", policy: .hours(3)) { $0 = ($0 ?? 0) + 1 }
        try cache.touch("tagged", policy: .hours(2))
        said.append("\(try tags("tagged")) \(try number("tagged"))")
        try cache.setBytes([0x31], forKey: "c", tags: ["c"])
        _ = try cache.setIfAbsent(1, forKey: "d", tags: ["old"])
        _ = try cache.setIfPresent(1, forKey: "d", tags: ["d"])
        _ = try cache.setIfAbsent(1, forKey: "e", tags: ["old"])
        _ = try cache.replace(1, with: 2, forKey: "e", tags: ["e"])
        try cache.update(Int.self, forKey: "f", tags: ["f"]) { $0 = 1 }
        try cache.set(["g": 1, "g2": 1], tags: ["g"])
        try cache.batch { batch in
            try batch.set(1, forKey: "h", tags: ["h"])
            try batch.setBytes([0x31], forKey: "i", tags: ["i"])
            batch.remove("none")
        }
        var lists: [String] = []
        for key in ["c", "d", "e", "f", "g", "h", "i"] { lists.append(try tags(key)) }
        said.append(lists.joined(separator: " "))
        var batch = cache.makeBatch()
        try batch.set(1, forKey: "good", tags: ["good"])
        for bad in Self.bad {
            do {
                try cache.set(1, forKey: "bad", tags: bad)
            } catch {
                said.append(Self.text(error))
            }
            #expect(throws: (any Error).self) { try batch.set(1, forKey: "bad", tags: bad) }
        }
        said.append("\(try cache.contains("bad")) \(batch.count)")
        do {
            try cache.removeAll(tagged: (1...1025).map { "\($0)" })
        } catch {
            said.append(Self.text(error))
        }
        do {
            try cache.removeAll(tagged: ["soft", "SOFT"])
        } catch {
            said.append(Self.text(error))
        }
        try cache.removeAll(tagged: [])
        try cache.set(2, forKey: "soft", tags: ["soft"])
        try cache.removeAll(tagged: "d")
        said.append("\(try number("untagged")) \(try number("d")) \(try number("soft"))")
        try cache.set(3, forKey: "left", tags: ["SOFT"])
        try cache.removeAll(tagged: ["e", "soft"], soft: true)
        try cache.removeAll(tagged: ["a", "g", "soft"])
        said.append("\(try number("tagged")) \(try number("g2")) \(try number("left"))")
        #expect(said == Self.expected)
        try daemon.stop()
    }

    @Test(arguments: [false, true]) func tagsOfTheAsynchronousClientHaveTheExpectedResults(isNear: Bool) async throws {
        let daemon = try DaemonProcess()
        var options = ClientOptions()
        options.nearCache = isNear ? NearCacheOptions() : nil
        let client = try await LarderClient.connect(socketPath: daemon.socketPath, options: options)
        let cache = client.cache("a", of: Int.self)
        var said: [String] = []
        func tags(_ key: String) async throws -> String { try await cache.tags(forKey: key).map { "\($0)" } ?? "nil" }
        func number(_ key: String) async throws -> String {
            try await cache.value(forKey: key).map { "\($0)" } ?? "nil"
        }
        try await cache.set(1, forKey: "tagged", policy: .hours(1), tags: ["a", "b", "a"])
        try await cache.set(1, forKey: "untagged")
        said.append("\(try await tags("tagged")) \(try await tags("untagged")) \(try await tags("none"))")
        // None of these changes specifies tags, so each keeps the entry's tags.
        try await cache.increment("tagged")
        try await cache.set(3, forKey: "tagged", policy: .keep)
        try await cache.update(forKey: "tagged") { $0 = ($0 ?? 0) + 1 }
        try await cache.update(forKey: "tagged", policy: .hours(3)) { $0 = ($0 ?? 0) + 1 }
        try await cache.touch("tagged", policy: .hours(2))
        said.append("\(try await tags("tagged")) \(try await number("tagged"))")
        try await cache.setBytes([0x31], forKey: "c", tags: ["c"])
        _ = try await cache.setIfAbsent(1, forKey: "d", tags: ["old"])
        _ = try await cache.setIfPresent(1, forKey: "d", tags: ["d"])
        _ = try await cache.setIfAbsent(1, forKey: "e", tags: ["old"])
        _ = try await cache.replace(1, with: 2, forKey: "e", tags: ["e"])
        try await cache.update(forKey: "f", tags: ["f"]) { $0 = 1 }
        try await cache.set(["g": 1, "g2": 1], tags: ["g"])
        try await cache.batch { batch in
            try batch.set(1, forKey: "h", tags: ["h"])
            try batch.setBytes([0x31], forKey: "i", tags: ["i"])
            batch.remove("none")
        }
        var lists: [String] = []
        for key in ["c", "d", "e", "f", "g", "h", "i"] { lists.append(try await tags(key)) }
        said.append(lists.joined(separator: " "))
        var batch = cache.makeBatch()
        try batch.set(1, forKey: "good", tags: ["good"])
        for bad in Self.bad {
            do {
                try await cache.set(1, forKey: "bad", tags: bad)
            } catch {
                said.append(Self.text(error))
            }
            #expect(throws: (any Error).self) { try batch.set(1, forKey: "bad", tags: bad) }
        }
        said.append("\(try await cache.contains("bad")) \(batch.count)")
        do {
            try await cache.removeAll(tagged: (1...1025).map { "\($0)" })
        } catch {
            said.append(Self.text(error))
        }
        do {
            try await cache.removeAll(tagged: ["soft", "SOFT"])
        } catch {
            said.append(Self.text(error))
        }
        try await cache.removeAll(tagged: [])
        try await cache.set(2, forKey: "soft", tags: ["soft"])
        try await cache.removeAll(tagged: "d")
        said.append("\(try await number("untagged")) \(try await number("d")) \(try await number("soft"))")
        try await cache.set(3, forKey: "left", tags: ["SOFT"])
        try await cache.removeAll(tagged: ["e", "soft"], soft: true)
        try await cache.removeAll(tagged: ["a", "g", "soft"])
        said.append("\(try await number("tagged")) \(try await number("g2")) \(try await number("left"))")
        #expect(said == Self.expected)
        client.close()
        try daemon.stop()
    }
}
