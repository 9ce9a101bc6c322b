import Testing

@testable import LarderEngine

/// Tests of the speed at which writers may add entries while a checkpoint is running.
@Suite struct WritePaceTests {
    private static let mebibyte = 1 << 20

    @Test("writers are not slowed down while there is enough room") func thereIsEnoughRoom() {
        #expect(WritePace().limit(used: 40, most: 64, seconds: 0.01) == .max)
    }

    @Test("the less room is left, the slower are writers") func writersBecomeSlower() {
        let unit = Self.mebibyte
        var last = Int.max
        for dirty in 41...64 {
            let limit = WritePace().limit(used: dirty * unit, most: 64 * unit, seconds: 0.01)
            #expect(limit - dirty * unit < last)
            last = limit - dirty * unit
        }
        #expect(last == 0)
    }

    /// LevelDB takes nothing for a second of every three. The writers could be four times as fast as LevelDB.
    @Test("writers never stop while LevelDB merges tables") func writersNeverStop() {
        let unit = Self.mebibyte
        var pace = WritePace()
        var (dirty, passed, slowest, written) = (0, 0, Int.max, 0)
        for tick in 0..<6000 {
            pace.note(passed: passed, seconds: 0.01)
            let limit = pace.limit(used: dirty, most: 64 * unit, seconds: 0.01)
            let added = min(unit, limit - dirty)
            dirty += added
            written += added
            slowest = min(slowest, added)
            #expect(dirty < 64 * unit)
            if tick % 300 >= 100 {
                let taken = min(dirty, unit * 3 / 8)
                dirty -= taken
                passed += taken
            }
        }
        // At least 1.5 MiB a second at any time, and LevelDB's 25 MiB a second on average.
        #expect(slowest > 15_000, "\(slowest)")
        #expect(written > 6000 * unit / 4)
    }
}
