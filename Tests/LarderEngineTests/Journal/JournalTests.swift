import LarderPlatform
import LarderTestSupport
import Testing

@testable import LarderEngine

@Suite struct JournalTests {
    @Test func appendedGroupsAreReplayed() throws {
        let history = try JournalHistory()
        for readAheadBytes in [1, 64, 1 << 20] {
            // Each process appends to a segment of its own.
            let journal = try history.open(readAheadBytes: readAheadBytes)
            #expect(try history.prefix(journal).count == history.groups.count)
            try history.append(30, to: journal)
            let (count, report) = try history.prefix(journal)
            #expect(count == history.groups.count)
            #expect(report.frames == history.groups.count)
            #expect(report.operations == history.groups.reduce(0) { $0 + $1.entries.count })
            #expect(report.lastSequence == history.groups.last?.last)
            #expect(report.cut == nil && report.damage == nil)
            journal.close()
        }
        #expect(try history.segments().count == 3)
    }

    @Test func anEmptyJournalIsOnlyADirectory() throws {
        let history = try JournalHistory()
        let journal = try history.open()
        #expect(try journal.replay { _, _ in } == JournalReport())
        try journal.append(JournalBatch())
        try journal.sync()
        #expect(journal.rotate() == nil)
        #expect(try FileSystem.list(history.path).isEmpty)
        #expect(journal.byteCounts.live == 0 && journal.activeNumber == nil)
    }

    @Test func bigGroupsAreReplayed() throws {
        let history = try JournalHistory()
        let journal = try history.open(segmentBytes: 1 << 16, readAheadBytes: 1 << 12)
        for size in [1 << 12, 3 << 20, 5, 1 << 16] {
            let sequence = history.nextSequence
            let key = [UInt8](repeating: 7, count: Key.bytesMax)
            let record = [UInt8](repeating: UInt8(truncatingIfNeeded: size), count: size)
            let group = JournalGroup(first: sequence, last: sequence, entries: [JournalEntry(key: key, record: record)])
            try journal.append(group)
            history.groups.append(group)
            history.nextSequence += 1
        }
        #expect(try history.prefix(journal).count == 4)
        #expect(try history.prefix(try history.open()).count == 4)
    }

    @Test func segmentsStayWithinTheirSize() throws {
        let history = try JournalHistory()
        let journal = try history.open(segmentBytes: 600)
        try history.append(40, to: journal)
        let sizes = try history.segments().map { try Files.read($0).count }
        #expect(sizes.count > 5)
        #expect(sizes.allSatisfy { $0 <= 600 })
        #expect(journal.byteCounts.live == sizes.reduce(0, +))
        #expect(journal.activeNumber == UInt64(sizes.count))
        #expect(try history.prefix(try history.open()).count == 40)
    }

    @Test func removingSegmentsKeepsTheOthers() throws {
        let history = try JournalHistory()
        let journal = try history.open()
        try history.append(5, to: journal)
        #expect(journal.rotate() == 1)
        // The second rotation does nothing, because no group was appended since the first.
        #expect(journal.rotate() == 1)
        try history.append(5, to: journal)
        try journal.removeSegments(upTo: 1)
        #expect(try history.segments() == [history.path + "/0000000000000002.log"])
        history.groups.removeFirst(5)
        let (count, report) = try history.prefix(try history.open())
        #expect(count == 5)
        #expect(report.precedingSequence < history.groups[0].first && report.precedingSequence > 0)
        // The segment that is being written is never removed.
        try journal.removeSegments(upTo: .max)
        #expect(try history.segments().count == 1)
        #expect(journal.rotate() == 2)
        try journal.removeSegments(upTo: 2)
        #expect(try history.segments().isEmpty && journal.byteCounts.live == 0)
        #expect(journal.rotate() == nil)
        try history.append(1, to: journal)
        #expect(journal.activeNumber == 3)
    }

    @Test func segmentsOfAnEarlierProcessCanBeRemoved() throws {
        let history = try JournalHistory.threeSegments()
        let journal = try history.open()
        _ = try journal.replay { _, _ in }
        #expect(journal.rotate() == 3)
        try journal.removeSegments(upTo: 3)
        #expect(try history.segments().isEmpty)
        try history.append(1, to: journal)
        #expect(journal.activeNumber == 4)
    }

    /// A process that appends without reading the journal first does not overwrite existing groups.
    @Test func appendingWithoutReplayOverwritesNothing() throws {
        let history = try JournalHistory.threeSegments()
        let journal = try history.open()
        try history.append(2, to: journal)
        #expect(try history.prefix(try history.open()).count == 14)
    }

    @Test func groupsWithLowerSequencesAreRefused() throws {
        let history = try JournalHistory()
        let journal = try history.open()
        let entry = JournalEntry(key: [1], record: [2])
        try journal.append(JournalGroup(first: 10, last: 12, entries: [entry, entry, entry]))
        for first in [UInt64](1...12) {
            #expect(throws: FileError.self) {
                try journal.append(JournalGroup(first: first, last: first, entries: [entry]))
            }
        }
        try journal.append(JournalGroup(first: 13, last: 13, entries: [entry]))
        let reopened = try history.open()
        #expect(throws: FileError.self) {
            try reopened.append(JournalGroup(first: 13, last: 13, entries: [entry]))
        }
        #expect(try reopened.groups().groups.map(\.last) == [12, 13])
    }

    @Test func foreignFilesAreLeftAlone() throws {
        let history = try JournalHistory.threeSegments()
        let foreign = [
            "README", "0000000000000001.txt", "000000000000001.log", "0000000000000000.log", "00000000000000AB.log",
            "ffffffffffffffff.log", "+000000000000001.log", ".log",
        ]
        for name in foreign { try Files.write(history.path + "/" + name, [1, 2, 3]) }
        let journal = try history.open()
        let (count, report) = try history.prefix(journal)
        #expect(count == 12 && report.cut == nil && report.damage == nil)
        try history.append(1, to: journal)
        _ = journal.rotate()
        try journal.removeSegments(upTo: .max)
        #expect(try FileSystem.list(history.path) == foreign.sorted())
    }

    @Test func anUnfinishedSegmentIsOverwritten() throws {
        let history = try JournalHistory.threeSegments()
        try Files.write(history.path + "/0000000000000004.log.new", [UInt8](repeating: 1, count: 500))
        let journal = try history.open()
        try history.append(1, to: journal)
        #expect(try history.prefix(try history.open()).count == 13)
        #expect(try Files.names(in: history.path, endingWith: ".new").isEmpty)
    }

    @Test func aJournalOfANewerVersionIsRefusedAndNotChanged() throws {
        let history = try JournalHistory.threeSegments()
        let last = try history.segments()[2]
        var bytes = try Files.read(last)
        bytes[11] = 2
        withUnsafeBytes(of: CRC32C.checksum(bytes[0..<12]).bigEndian) { bytes.replaceSubrange(12..<16, with: $0) }
        // The remaining bytes may differ arbitrarily in a newer version.
        for index in 16..<bytes.count { bytes[index] ^= 0x5A }
        try Files.write(last, bytes)
        let journal = try history.open()
        var visited = 0
        do throws(LarderError) {
            _ = try journal.replay { _, _ in visited += 1 }
            Issue.record("a newer version was read")
        } catch {
            #expect(error.code == .newerFormat)
        }
        #expect(visited == 0)
        #expect(throws: FileError.self) { try history.append(1, to: journal) }
        #expect(try Files.read(last) == bytes)
        #expect(try history.segments().count == 3)
    }

    @Test func aClosedJournalRefusesCalls() throws {
        let history = try JournalHistory()
        let journal = try history.open()
        try history.append(1, to: journal)
        journal.close()
        journal.close()
        #expect(throws: FileError.self) { try history.append(1, to: journal) }
        #expect(throws: FileError.self) { try journal.sync() }
    }

    /// Concurrent syncs, rotations and removals do not disturb appends.
    @Test func appendsSucceedDuringConcurrentSyncsAndRemovals() throws {
        let history = try JournalHistory()
        let journal = try history.open(segmentBytes: 2000)
        let isDone = Guarded(false)
        let threads = (0..<2).map { index in
            WorkThread(name: "test-\(index)") {
                while !isDone.value {
                    if index == 0 { try? journal.sync() } else { _ = try? journal.removeSegments(upTo: 20) }
                    _ = journal.byteCounts.live
                }
            }
        }
        for round in 0..<400 {
            try history.append(1, to: journal)
            if round % 50 == 0 { #expect(try journal.groups().report.damage == nil) }
        }
        isDone.value = true
        for thread in threads { thread.join() }
        try journal.removeSegments(upTo: 20)
        let (found, report) = try history.open().groups()
        #expect(report.damage == nil && report.cut == nil)
        #expect(found.map(\.last) == Array(history.groups.suffix(found.count).map(\.last)))
        #expect(report.precedingSequence == history.groups.dropLast(found.count).last?.last)
    }
}
