import Larder
import LarderEngine
import LarderTestSupport
import Testing

/// Tests of the changes that are reported to observers, for every way in which entries change.
@Suite(.timeLimit(.minutes(10))) struct ChangesTests: Sendable {
    // `nonisolated(unsafe)` is safe here, because only one task at a time creates caches in the workspace.
    nonisolated(unsafe) let work: Workspace
    let cache: Cache

    init() throws {
        work = try Workspace()
        cache = try work.cache(policy: .high)
    }

    /// Returns the changes reported so far: stores the key `end` as an end mark, and reads up to the change of `end`.
    private func notified(_ changes: CacheChanges, _ cache: Cache? = nil, end: String = "~end") async throws -> [String]
    {
        try await (cache ?? self.cache).set(0, forKey: end)
        var found: [String] = []
        for try await change in changes {
            if change.key == end { break }
            found.append(change.description)
        }
        return found
    }

    private func advance(_ milliseconds: Int64) async throws {
        work.time.advance(milliseconds: milliseconds)
        try await cache.sweep()
    }

    // MARK: Kinds

    @Test func everyWriteIsReported() async throws {
        let changes = try cache.changes()
        try await cache.set(1, forKey: "a")
        #expect(try await notified(changes) == ["stored a"])
        try await cache.set(["b": 1, "c": 2])
        #expect(try await notified(changes).sorted() == ["stored b", "stored c"])
        try await cache.increment("a")
        #expect(try await notified(changes) == ["stored a"])
        try await cache.update([Int].self, forKey: "d") { $0 = [1] }
        #expect(try await notified(changes) == ["stored d"])
        try await cache.batch { batch in
            try batch.set(5, forKey: "e")
            batch.remove("a")
        }
        #expect(try await notified(changes) == ["stored e", "removed a"])
        try await cache.batch { batch in
            batch.remove("never there")
            try batch.set(1, forKey: "both")
            batch.remove("both")
        }
        #expect(try await notified(changes) == ["removed both"])
        try await cache.batch { batch in batch.remove("never there") }
        #expect(try await notified(changes) == [], "nothing was removed")
        #expect(try await cache.touch("e", policy: .low))
        #expect(try await notified(changes) == ["stored e"])
        #expect(try await cache.setIfAbsent(1, forKey: "e") == false)
        #expect(try await cache.value(Int.self, forKey: "f") { 6 } == 6)
        #expect(try await notified(changes) == ["stored f"])
        #expect(try await cache.removeValue(Int.self, forKey: "f") == 6)
        #expect(try await notified(changes) == ["removed f"])
        #expect(try await cache.remove("nothing") == false)
        try await cache.setBytes([UInt8](repeating: 1, count: 5 << 20), forKey: "long")
        #expect(try await notified(changes) == ["stored long"])
        try await cache.remove(prefix: "l")
        #expect(try await notified(changes) == ["removed long"])
    }

    @Test func aPurgeIsReportedAsOneChange() async throws {
        let changes = try cache.changes()
        let one = try cache.changes(forKey: "a")
        let other = try cache.changes(prefix: "x")
        for key in ["a", "b"] { try await cache.set(1, forKey: key) }
        try await cache.removeAll()
        #expect(try await notified(changes) == ["purged"])
        #expect(try await notified(one, end: "a") == ["purged"])
        #expect(try await notified(other, end: "x") == ["purged"])
    }

    @Test func aTagPurgeIsReportedWithItsTags() async throws {
        let database = try Engine.open(work.directory).database("books")
        let changes = try cache.changes(prefix: "p")
        try database.purge(.tags([Array("article:17".utf8), Array("x".utf8)], soft: false))
        #expect(try await notified(changes, end: "p") == ["purged article:17 x"])
        try database.purge(.tags([Array("y".utf8)], soft: true))
        #expect(try await notified(changes, end: "p") == ["purged y"])
    }

    @Test func changesOfOtherDatabasesAreNotReported() async throws {
        let changes = try cache.changes()
        let other = try work.cache("other")
        try await other.set(1, forKey: "a")
        try await other.removeAll()
        try await work.cache(policy: nil).set(1, forKey: "b")
        #expect(try await notified(changes) == ["stored b"])
    }

    @Test func deletingTheDatabaseEndsTheSequenceWithAnError() async throws {
        let changes = try cache.changes()
        let waiting = Task { try await changes.first { $0.kind == .stored } }
        try await cache.delete()
        await #expect { try await waiting.value } throws: { ($0 as? LarderError)?.code == .deleted }
        expectError(.deleted) { _ = try cache.changes() }
    }

    // MARK: Which keys

    @Test func onlyChangesOfKeysWithThePrefixAreReported() async throws {
        let changes = try cache.changes(prefix: "user:")
        for key in ["user", "user:", "user:1", "user;", "usfr:", "", "User:1"] { try await cache.set(1, forKey: key) }
        #expect(try await notified(changes, end: "user:~") == ["stored user:", "stored user:1"])
        let one = try cache.changes(forKey: "user:1")
        for key in ["user:", "user:1", "user:10"] { try await cache.set(1, forKey: key) }
        #expect(try await notified(one, end: "user:1") == [])
    }

    @Test func changesOfKeysWithAnyBytesAreReported() async throws {
        let changes = try cache.changes(prefix: [0, 255] as [UInt8])
        try await cache.set(1, forKey: [0, 255, 0, 42] as [UInt8])
        try await cache.set(1, forKey: [0, 254] as [UInt8])
        try await cache.set(1, forKey: [0, 255] as [UInt8])
        var iterator = changes.makeAsyncIterator()
        #expect(try await iterator.next()?.keyBytes == [0, 255, 0, 42])
        #expect(try await iterator.next()?.keyBytes == [0, 255])
    }

    @Test func invalidArgumentsAreRefused() throws {
        let long = String(repeating: "x", count: 65_537)
        expectError(.invalidArgument) { _ = try cache.changes(prefix: long) }
        expectError(.invalidArgument) { _ = try cache.changes(forKey: long) }
        expectError(.invalidArgument) { _ = try cache.changes(bufferMax: 0) }
        _ = try cache.changes(prefix: String(long.dropLast()))
        cache.close()
        expectError(.closed) { _ = try cache.changes() }
    }

    // MARK: Expiry

    @Test func entriesStoredWhileObservedAreReportedWhenTheyExpire() async throws {
        let changes = try cache.changes()
        try await cache.set(1, forKey: "governed")
        try await cache.set(1, forKey: "own", policy: .seconds(30))
        try await cache.set(1, forKey: "never", policy: .never)
        _ = try await notified(changes)
        try await advance(29_999)
        #expect(try await notified(changes) == [])
        try await advance(1)
        #expect(try await notified(changes) == ["expired own"])
        try await advance(30_000)
        #expect(try await notified(changes) == ["expired governed"])
        // The later sweep, which reclaims the space, does not report the expiries again.
        try await cache.removeExpired()
        for _ in 0..<4 { try await advance(60_000) }
        #expect(Set(try await notified(changes)).isSubset(of: ["expired ~end"]))
    }

    @Test func anEntryThatWasStoredAgainIsNotReportedAsExpired() async throws {
        let changes = try cache.changes()
        try await cache.set(1, forKey: "k", policy: .seconds(10))
        work.time.advance(milliseconds: 10_000)
        try await cache.set(2, forKey: "k", policy: .seconds(10))
        try await cache.sweep()
        #expect(try await notified(changes) == ["stored k"])
        work.time.advance(milliseconds: 9_999)
        try await cache.touch("k", policy: .seconds(10))
        _ = try await notified(changes)
        try await advance(9_999)
        #expect(try await notified(changes) == [])
        try await advance(1)
        #expect(try await notified(changes).contains("expired k"))
    }

    @Test func theExpiryOfAnExistingEntryIsReportedToObserversOfItsKey() async throws {
        try await cache.set(1, forKey: "k", policy: .seconds(10))
        let changes = try cache.changes(forKey: "k")
        try await advance(10_000)
        #expect(try await changes.makeAsyncIterator().nextText() == "expired k")
        // An observer is not notified of expiries before its subscription.
        let late = try cache.changes(forKey: "k")
        try await cache.sweep()
        #expect(try await notified(late, end: "k") == [])
    }

    @Test func anEntryOlderThanAPrefixObserverIsReportedAsExpiredWhenItsSpaceIsReclaimed() async throws {
        for key in ["a", "b"] { try await cache.set(1, forKey: key, policy: .seconds(10)) }
        let changes = try cache.changes(prefix: "a")
        work.time.advance(milliseconds: 10_000)
        try await cache.removeExpired()
        try await cache.sweep()
        #expect(try await notified(changes, end: "a~") == ["expired a"])
    }

    @Test func removingAnExpiredEntryReportsItAsExpired() async throws {
        let changes = try cache.changes()
        try await cache.set(1, forKey: "k", policy: .seconds(10))
        _ = try await notified(changes)
        work.time.advance(milliseconds: 10_000)
        #expect(try await cache.remove("k") == false)
        #expect(try await notified(changes) == ["expired k"])
        try await cache.sweep()
        #expect(try await notified(changes) == [])
    }

    @Test func aShorterPolicyExpiresEntriesEarlier() async throws {
        let changes = try cache.changes(prefix: "k")
        try await cache.set(1, forKey: "k")
        _ = try await notified(changes, end: "kend")
        work.time.advance(milliseconds: 10_000)
        try await cache.setPolicy(.highest)
        try await cache.sweep()
        #expect(Set(try await notified(changes, end: "k~")).contains("expired k"))
    }

    @Test func expiriesBeyondTheMaximumOfWatchedDeadlinesAreReportedByTheSweep() async throws {
        let changes = try cache.changes(prefix: "k", bufferMax: 100_000)
        let count = 65_536 + 500
        try await cache.set(Dictionary(uniqueKeysWithValues: (0..<count).map { ("k\($0)", 1) }), policy: .seconds(10))
        #expect(try await notified(changes, end: "k").count == count)
        work.time.advance(milliseconds: 10_000)
        try await cache.sweep()
        #expect(try await notified(changes, end: "k").count { $0.hasPrefix("expired") } >= 65_536 - 1)
        try await cache.removeExpired()
        try await cache.sweep()
        let rest = try await notified(changes, end: "k")
        #expect(rest.count <= 501 && rest.allSatisfy { $0.hasPrefix("expired") }, "\(rest.count)")
        #expect(try await notified(changes, end: "k") == [])
    }

    /// Expiries found by the sweep are buffered; if there are too many, the observer falls behind.
    @Test func tooManyExpiriesAreReportedAsFallingBehind() async throws {
        let many = Dictionary(uniqueKeysWithValues: (0..<70_000).map { ("k\($0)", 1) })
        try await cache.set(many, policy: .seconds(10))
        let changes = try cache.changes(prefix: "k", bufferMax: 100_000)
        work.time.advance(milliseconds: 10_000)
        try await cache.removeExpired()
        #expect(try await changes.makeAsyncIterator().nextText() == "fellBehind")
    }

    @Test func purgedEntriesAreNotReportedAsExpired() async throws {
        let changes = try cache.changes()
        try await cache.set(1, forKey: "k", policy: .seconds(10))
        try await cache.removeAll()
        #expect(try await notified(changes) == ["purged"])
        try await advance(10_000)
        #expect(try await notified(changes) == [])
    }

    // MARK: Values

    @Test func aDecodedChangeHasTheNewestValue() async throws {
        let changes = try cache.decodedChanges(Reader.self, prefix: "r")
        try await cache.set(Reader("Ana"), forKey: "r1")
        try await cache.set(Reader("Eve"), forKey: "r1")
        try await cache.setBytes([0xFF], forKey: "r2")
        try await cache.set(Reader("Ida"), forKey: "r3")
        try await cache.remove("r3")
        var iterator = changes.makeAsyncIterator()
        let first = try await iterator.next()
        #expect(try first?.value == Reader("Eve"))
        #expect(first?.key == "r1" && first?.kind == .stored)
        let second = try #require(try await iterator.next())
        expectError(.decoding) { _ = try second.value }
        let third = try await iterator.next()
        #expect(third?.change.description == "removed r3")
        #expect(try third?.value == nil)
        let one = try cache.decodedChanges(Int.self, forKey: "n")
        let all = try cache.decodedChanges(Int.self)
        try await cache.set(7, forKey: "n")
        for changes in [one, all] { #expect(try await changes.first { _ in true }?.value == 7) }
    }

    // MARK: The end

    @Test func aSequenceEndsWhenItsCacheClosesOrItsTaskIsCancelled() async throws {
        let changes = try cache.changes()
        let cancelled = Task { try await changes.first { $0.kind == .purged } }
        cancelled.cancel()
        #expect(try await cancelled.value == nil)
        let waiting = Task { try await changes.first { $0.kind == .purged } }
        await cache.close()
        #expect(try await waiting.value == nil)
        #expect(try await changes.first { _ in true } == nil)
    }

    @Test func releasingOrCancellingAllSequencesStopsTheObservation() async throws {
        let feed = try Engine.open(work.directory).changes
        #expect(!feed.isOn)
        var changes: CacheChanges? = try cache.changes()
        let other = try cache.changes(forKey: "k")
        #expect(feed.isOn)
        changes = nil
        #expect(feed.isOn)
        other.cancel()
        #expect(!feed.isOn)
        #expect(changes == nil)
        #expect(try await other.first { _ in true } == nil)
    }

    @Test func aSequenceKeepsTheLarderOpen() async throws {
        let changes = try await Cache(named: "kept", directory: work.directory, options: work.options()).changes()
        let kept = try work.cache("kept", policy: nil)
        await cache.close()
        try await kept.set(1, forKey: "a")
        #expect(try await changes.makeAsyncIterator().nextText() == "stored a")
    }

    @Test func aSlowConsumerFallsBehindAndContinues() async throws {
        let changes = try cache.changes(bufferMax: 8)
        for index in 0..<100 { try await cache.set(index, forKey: "k\(index % 8)") }
        for index in 0..<8 { #expect(try await changes.makeAsyncIterator().nextText() == "stored k\(index)") }
        for index in 0..<9 { try await cache.set(index, forKey: "k\(index)") }
        #expect(try await changes.makeAsyncIterator().nextText() == "fellBehind")
        #expect(try await notified(changes) == [])
    }
}

extension CacheChanges.Iterator {
    /// Returns the next change as text.
    fileprivate func nextText() async throws -> String? {
        var iterator = self
        return try await iterator.next()?.description
    }
}
