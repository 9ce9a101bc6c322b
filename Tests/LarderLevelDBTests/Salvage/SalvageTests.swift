import LarderLevelDB
import LarderLevelDBSalvage
import LarderPlatform
import LarderTestSupport
import Testing

@Suite struct SalvageTests {
    static let configurations: [Options] = [
        Options(writeBufferBytes: 64 << 10),
        Options(compression: .none, bloomBitsPerKey: 10, writeBufferBytes: 64 << 10, blockBytes: 1024),
        Options(bloomBitsPerKey: 10, writeBufferBytes: 1 << 20, blockRestartInterval: 1),
    ]

    @Test(arguments: configurations) func salvagingAnUndamagedDatabaseReturnsAllEntries(options: Options) throws {
        let seed = testSeed()
        let history = try SalvageHistory.usual(seed: seed, options: options)
        var salvage = SalvageOptions()
        salvage.syncedLogBytes = try history.synced()
        for options in [SalvageOptions(), salvage] {
            let outcome = try SalvageOutcome(path: history.path, options: options)
            #expect(outcome.entries == history.model, "seed \(seed)")
            #expect(outcome.report.isUndamaged, "seed \(seed): \(outcome.report)")
            #expect(outcome.removed.isEmpty)
            outcome.check(against: history, "seed \(seed)")
        }
    }

    /// Checks that the history has small tables on several levels, which other tests rely on.
    @Test func theHistoryOfTheseTestsHasTablesOnSeveralLevels() throws {
        let history = try SalvageHistory.usual(seed: 1)
        try history.workspace.reopen(history.options)
        #expect(try history.workspace.database.tableCount(level: 1) > 0)
        #expect(try history.tables().count >= 4)
    }
}
