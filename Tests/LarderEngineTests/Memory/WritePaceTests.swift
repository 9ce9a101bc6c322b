import Testing

@testable import LarderEngine

/// Tests of the speed at which writers may add entries while a checkpoint is running.
@Suite struct WritePaceTests {
    private static let mebibyte = 1 << 20

    @Test("writers are not slowed down while there is enough room") func thereIsEnoughRoom() {
        #expect(WritePace().limit(used: 32, most: 64, seconds: 0.01) == .max)
    }

    @Test("the less room is left, the slower are writers") func writersBecomeSlower() {
        let unit = Self.mebibyte
        var last = Int.max
        for dirty in 33...64 {
            let limit = WritePace().limit(used: dirty * unit, most: 64 * unit, seconds: 0.01)
            #expect(limit - dirty * unit < last)
            last = limit - dirty * unit
        }
        #expect(last == 0)
    }

    /// LevelDB takes nothing for a third of the time. The writers could be four times as fast as LevelDB.
    /// - Parameters:
    ///   - merge: the time of each merge, in hundredths of a second.
    ///   - least: the minimum of bytes that all writers together can add in a hundredth of a second.
    @Test("writers never stop while LevelDB merges tables", arguments: [(100, 35_000), (200, 10_000), (300, 5_000)])
    func writersNeverStop(merge: Int, least: Int) {
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
            if tick % (3 * merge) >= merge {
                let taken = min(dirty, unit * 3 / 8)
                dirty -= taken
                passed += taken
            }
        }
        // LevelDB takes 25 MiB a second on average.
        #expect(slowest > least, "\(slowest)")
        #expect(written > 6000 * unit / 4)
    }
}
