import Larder
import LarderTestSupport
import Synchronization
import Testing

@testable import LarderEngine

/// Tests of `remove()` of a query after entries were evicted that the journal still has: a crash must not restore them.
@Suite struct EvictedRowsTests {
    private let workspace: Workspace
    private let cache: Cache
    private let database: Database

    init() throws {
        workspace = try Workspace()
        cache = try workspace.cache()
        try cache.set(["n": 1], forKey: "a")
        database = try Engine.open(workspace.directory).database("books")
        database.isEvictedInJournal.store(true, ordering: .relaxed)
    }

    /// The query finds no entry, because it was evicted.
    private var query: ModelQuery<[String: Int], Cache> {
        cache.query([String: Int].self).where(keyPrefix: "evicted")
    }

    private var isInJournal: Bool { database.isEvictedInJournal.load(ordering: .relaxed) }

    @Test func removalEmptiesTheJournal() throws {
        #expect(try query.keys() == [] && isInJournal)
        #expect(try query.remove() == 0 && !isInJournal)
    }

    @Test func tasksEmptyTheJournal() async throws { #expect(try await query.remove() == 0 && !isInJournal) }
}
