import Foundation
import Larder
import Testing

/// Returns the user names of all readers in a cache or a snapshot. Shows that the same code can read from both.
private func userNames(_ reading: some CacheReading) throws -> [String] {
    try reading.entries(of: Reader.self).values().map(\.userName)
}

@Suite struct SnapshotTests {
    let work: Workspace
    let cache: Cache

    init() throws {
        work = try Workspace()
        cache = try work.cache()
    }

    @Test func aSnapshotDoesNotShowLaterWrites() throws {
        try cache.set(Reader("a"), forKey: "a")
        try cache.set(Reader("b"), forKey: "b")
        let snapshot = try cache.snapshot()
        try cache.set(Reader("changed"), forKey: "a")
        try cache.remove("b")
        try cache.set(Reader("c"), forKey: "c")
        #expect(try snapshot.value(Reader.self, forKey: "a") == Reader("a"))
        #expect(try snapshot["b", as: Reader.self] == Reader("b"))
        #expect(try snapshot.contains("c") == false)
        #expect(try snapshot.info(forKey: "b")?.codec == .json)
        #expect(try snapshot.bytes(forKey: "b") != nil)
        #expect(try snapshot.values(Reader.self, forKeys: ["a", "c"]) == ["a": Reader("a")])
        #expect(
            try snapshot.values(Reader.self, forKeys: ["b", "c"], notFound: Reader("")) == [Reader("b"), Reader("")])
        #expect(try snapshot.keys() == ["a", "b"])
        #expect(try snapshot.keys(EntryOptions(backward: true)) == ["b", "a"])
        #expect(try snapshot.count() == 2)
        #expect(try userNames(snapshot) == ["a", "b"])
        #expect(try userNames(cache) == ["changed", "c"])
        #expect(snapshot.name == "books" && snapshot.policy == .high)
        #expect(try snapshot.dictionary(matching: #Predicate<Reader> { $0.userName == "b" }) == ["b": Reader("b")])
    }

    @Test func entriesOfASnapshotExpireButAreNotSwept() throws {
        try cache.set(1, forKey: "k")
        let snapshot = try cache.snapshot()
        work.time.advance(milliseconds: 60_000)
        #expect(try snapshot.value(Int.self, forKey: "k") == nil)
        #expect(try snapshot.storedCount() == 1)
        try cache.sweep()
        #expect(try cache.storedCount() == 0)
        #expect(try snapshot.storedCount() == 1)
    }

    @Test func aSnapshotOfAnEmptyDatabaseIsEmpty() throws {
        let fresh = try work.cache("fresh", policy: nil)
        let snapshot = try fresh.snapshot()
        try fresh.set(1, forKey: "k")
        #expect(try snapshot.value(Int.self, forKey: "k") == nil)
        #expect(try snapshot.count() == 0)
        #expect(try snapshot.keys() == [])
    }

    @Test func aSnapshotThrowsAfterAPurgeOrADeletion() throws {
        try cache.set(1, forKey: "k")
        let snapshot = try cache.snapshot()
        try cache.removeAll()
        expectError(.purged) { _ = try snapshot.value(Int.self, forKey: "k") }
        expectError(.purged) { _ = try snapshot.keys() }
        expectError(.purged) { _ = try snapshot.values(Int.self, forKeys: ["k"]) }
        expectError(.purged) { _ = try snapshot.count() }
        let second = try cache.snapshot()
        try cache.delete()
        expectError(.deleted) { _ = try second.value(Int.self, forKey: "k") }
    }

    @Test func aClosedSnapshotThrowsClosed() throws {
        try cache.set(1, forKey: "k")
        let snapshot = try cache.snapshot()
        snapshot.close()
        snapshot.close()
        expectError(.closed) { _ = try snapshot.value(Int.self, forKey: "k") }
        expectError(.closed) { _ = try snapshot.entries(of: Int.self).values() }
        #expect(try cache.value(Int.self, forKey: "k") == 1)
    }

    @Test func aSnapshotOutlivesItsCache() throws {
        try cache.set(1, forKey: "k")
        let snapshot = try cache.snapshot()
        cache.close()
        #expect(try snapshot.value(Int.self, forKey: "k") == 1)
        snapshot.close()
        // The larder is closed, so it can be opened with other options.
        #expect(try work.cache { $0.databasesMax = 1 }.value(Int.self, forKey: "k") == 1)
    }
}
