import Testing

@testable import LarderServer

@Suite struct DescriptorBudgetTests {
    private func budget(
        _ limit: Int, databases: Int = 1, openFilesMax: Int = 1000, threads: Int = 1
    ) -> DescriptorBudget? {
        DescriptorBudget(
            limit: limit, databases: databases, databasesMax: 64, openFilesMax: openFilesMax, threads: threads)
    }

    @Test("with many descriptors, enough are reserved for all databases")
    func descriptorsAreReservedForAllDatabases() throws {
        let ample = try #require(self.budget(20_000))
        #expect(ample.reserve == 28 + 4 + 5 * 64 + 1000)
        #expect(ample.forConnections == 20_000 - ample.reserve)
        // LevelDB takes at most a fifth for tables.
        #expect(budget(20_000, openFilesMax: 50_000)?.reserve == 28 + 4 + 5 * 64 + 4000)
    }

    @Test("with few descriptors, half of them or the minimum are reserved for the larder's files")
    func withFewDescriptorsHalfAreReservedForFiles() throws {
        #expect(budget(1024)?.reserve == 512)
        #expect(budget(64)?.reserve == 28 + 4 + 5 * 4)
        #expect(budget(64)?.forConnections == 12)
        // Every existing database counts, regardless of --max-databases.
        #expect(budget(1024, databases: 150)?.reserve == 28 + 4 + 5 * 151)
    }

    /// The next process must be able to open a database that this one created.
    @Test("no more databases are created than the next start can open")
    func theNumberOfDatabasesIsLimitedByDescriptors() throws {
        for limit in 41..<400 {
            guard let first = budget(limit, databases: 0) else { continue }
            #expect(first.databasesPossible >= 1)
            let next = try #require(budget(limit, databases: first.databasesPossible), "\(limit)")
            #expect(next.databasesPossible >= first.databasesPossible)
            // The clients cannot use descriptors that the databases need.
            #expect(first.forConnections + 28 + 4 + 5 * first.databasesPossible <= limit)
        }
        #expect(try #require(budget(1024)).databasesPossible >= 64)
        #expect(try #require(budget(1024, databases: 150)).databasesPossible >= 150)
    }

    @Test func withTooFewDescriptorsTheStartFails() {
        #expect(budget(46) != nil)
        #expect(budget(45) == nil)
        #expect(budget(46, databases: 2) == nil)
        #expect(budget(46, threads: 2) == nil)
    }
}
