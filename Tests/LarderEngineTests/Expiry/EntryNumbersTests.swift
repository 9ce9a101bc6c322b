import LarderTestSupport
import Testing

@testable import LarderEngine

/// The numbers of entries by state, over all ways in which LevelDB and memory can share them.
@Suite struct EntryNumbersTests {
    /// What a plain look at all entries gives.
    private func expected(_ database: Database) throws -> EntryNumbers {
        var numbers = EntryNumbers()
        guard let cursor = try database.cursor(EnumerationOptions(includeExpired: true)) else { return numbers }
        while try cursor.next() {
            numbers.stored += 1
            switch database.rules.freshness(try cursor.header(), now: database.now()) {
            case .fresh: numbers.fresh += 1
            case .stale: numbers.stale += 1
            case .gone: break
            }
        }
        return numbers
    }

    @Test func theyAreThoseOfALookAtAllEntries() throws {
        var random = SeededGenerator(seed: testSeed())
        let larder = try TestLarder()
        let database = try larder.database()
        let tag = try Tags(checking: [[7]])
        for step in 0..<600 {
            let key = "key:\(Int.random(in: 0..<200, using: &random))"
            switch Int.random(in: 0..<20, using: &random) {
            case 0: _ = try database.flushedStore()
            case 1: try database.setPolicy(.every(milliseconds: 40_000) ?? .high, grace: 5_000)
            case 2: try database.setPolicy(.never)
            case 3: try database.purge(tags: [[7]], soft: Bool.random(using: &random))
            case 4: _ = try database.commit([Key(key)], loading: false) { $0.remove(0) }
            default:
                let life = Int64.random(in: 1...60_000, using: &random)
                let rule: DeadlineRule =
                    Bool.random(using: &random) ? .governed : .own(larder.time.wallMilliseconds() + life)
                let isTagged = Int.random(in: 0..<4, using: &random) == 0
                let grace: Int64? = Bool.random(using: &random) ? 3_000 : nil
                _ = try database.commit([Key(key)], loading: false) { update in
                    update.put(
                        0, payload: UnsafeRawBufferPointer(start: nil, count: 0), rule: rule, grace: grace,
                        tags: isTagged ? tag : nil)
                }
            }
            larder.time.advance(milliseconds: Int64.random(in: 0...2_000, using: &random))
            #expect(try database.entryNumbers() == expected(database), "step \(step)")
        }
    }

    @Test func endsAreCountedForAsLongAsTheyAreKnown() {
        var random = SeededGenerator(seed: testSeed())
        for _ in 0..<200 {
            var ends: [Int64?] = []
            var counted = CountedEnds(nearestMax: 8)
            for _ in 0..<Int.random(in: 0...60, using: &random) {
                let end = Int.random(in: 0..<8, using: &random) == 0 ? nil : Int64.random(in: 0...40, using: &random)
                ends.append(end)
                counted.add(end, now: 10)
            }
            counted.complete()
            for now in Int64(10)...50 where now < counted.knownUntil {
                #expect(counted.count(now: now) == ends.count { $0.map { $0 > now } ?? true })
            }
            #expect(counted.knownUntil > 10)
            #expect(counted.knownUntil == .max || ends.count > 8)
        }
    }
}
