import LarderPlatform
import LarderTestSupport
import Testing

@testable import LarderEngine

/// The disk limit of a database with indexes.
@Suite struct IndexDiskTests {
    private static let limit = 16 << 20
    private static let most = DiskThresholds(limit: limit, checkpointBytes: 64 << 20, hasJournal: true).peakBytes

    private func larder() throws -> TestLarder {
        try TestLarder { options in
            options.indexMaker = WordIndexMaker()
            options.diskBytesMax = Self.limit
            options.memoryBytes = 1 << 20
        }
    }

    /// Stores entries whose hints take more space than their records.
    /// - Returns: the largest size of the files.
    private func fill(_ larder: TestLarder, count: Int) throws -> Int {
        let books = try larder.database(policy: .never)
        var random = SeededGenerator(seed: 1)
        var peak = 0
        for number in 0..<count {
            let words = (0..<64).map { _ in "w" + String(random.next(), radix: 36) }
            try books.put("key:\(number)", words.joined(separator: ","))
            if number % 50 == 0 { peak = max(peak, FileSystem.space(larder.path)) }
        }
        return peak
    }

    private func checkEntries(_ books: Database) throws {
        let left = try books.count(includingExpired: false)
        #expect(left > 1000)
        #expect(try books.keys(withWordsFrom: "w", through: "x")?.count == left)
        #expect(try books.missingHints() == [])
    }

    @Test func hintsCountTowardsTheDiskLimit() throws {
        let larder = try larder()
        let books = try larder.database(policy: .never)
        try books.createIndex("w")
        let peak = try fill(larder, count: 12_000)
        #expect(peak <= Self.most, "\(peak) bytes instead of \(Self.most)")
        #expect(try larder.engine().statistics.evicted.read() > 1000)
        try larder.maintain()
        try checkEntries(books)
    }

    @Test func buildingAnIndexEvictsEntriesIfItNeedsSpace() throws {
        let larder = try larder()
        let books = try larder.database(policy: .never)
        var peak = try fill(larder, count: 12_000)
        let evicted = try larder.engine().statistics.evicted.read()
        try books.createIndex("w")
        for _ in 0..<100 where try books.indexStates() != ["w": .ready] {
            try larder.maintain()
            peak = max(peak, FileSystem.space(larder.path))
        }
        #expect(try books.indexStates() == ["w": .ready])
        #expect(peak <= Self.most, "\(peak) bytes instead of \(Self.most)")
        #expect(try larder.engine().statistics.evicted.read() > evicted)
        try checkEntries(books)
    }
}
