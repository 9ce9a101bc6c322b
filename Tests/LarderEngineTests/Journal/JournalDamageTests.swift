import LarderPlatform
import LarderTestSupport
import Testing

@testable import LarderEngine

/// Tests that reading a damaged journal returns the commit groups before the damage, and reports the missing ones.
@Suite struct JournalDamageTests {
    /// Returns the offsets of a segment's frames, and of the end of the last one.
    private func frames(_ path: String) throws -> [Int] {
        let bytes = try Files.read(path)
        var offsets = [JournalFormat.segmentHeaderBytes]
        while let offset = offsets.last, offset < bytes.count {
            let header = bytes.withUnsafeBytes { bytes in
                JournalFrameHeader(parsing: UnsafeRawBufferPointer(rebasing: bytes[offset...]), room: bytes.count)
            }
            offsets.append(offset + (try #require(header)).frameBytes)
        }
        return offsets
    }

    // MARK: Cut files

    @Test(arguments: [0, 1, 2]) func aTruncatedSegmentIsReplayedUpToItsLastCompleteFrame(_ index: Int) throws {
        let history = try JournalHistory.threeSegments()
        let path = try history.segments()[index]
        let whole = try Files.read(path)
        let ends = try frames(path)
        for length in 0..<whole.count {
            try Files.write(path, Array(whole[..<length]))
            let (count, report) = try history.prefix(try history.open())
            let good = max(0, ends.filter { $0 <= length }.count - 1)
            #expect(count == index * 4 + good, "cut at \(length)")
            if index < 2 {
                let damage = try #require(report.damage, "cut at \(length)")
                #expect(damage.segment == UInt64(index) + 1 && damage.laterFrames == (2 - index) * 4)
                #expect(!damage.concernsSynced && report.cut == nil)
            } else {
                #expect(report.damage == nil, "cut at \(length)")
                let rest = length - (length < 52 ? 0 : ends[good])
                #expect(report.cut?.bytes ?? 0 == rest, "cut at \(length)")
            }
        }
    }

    /// After a truncation the journal continues: new groups follow the remaining ones.
    @Test func appendsContinueAfterATruncationAtAnyByte() throws {
        let history = try JournalHistory.threeSegments()
        let last = try history.segments()[2]
        let whole = try Files.read(last)
        for length in stride(from: 0, through: whole.count, by: 3) {
            try Files.write(last, Array(whole[..<length]))
            let copy = try JournalHistory()
            try Files.copy(history.path, to: copy.path)
            let journal = try copy.open()
            copy.groups = history.groups
            let count = try #require(try copy.prefix(journal).count)
            copy.groups = Array(history.groups[..<count])
            copy.nextSequence = history.nextSequence
            try copy.append(2, to: journal)
            for journal in [journal, try copy.open()] {
                let (found, report) = try copy.prefix(journal)
                #expect(found == count + 2 && report.damage == nil && report.cut == nil, "cut at \(length)")
            }
        }
    }

    // MARK: Damaged bytes

    @Test(arguments: [0, 1, 2]) func aDamagedByteEndsTheReplayBeforeItsFrame(_ index: Int) throws {
        let history = try JournalHistory.threeSegments()
        let path = try history.segments()[index]
        let whole = try Files.read(path)
        let ends = try frames(path)
        for offset in whole.indices {
            for mask in [0xFF, UInt8(1) << UInt8(offset % 8)] {
                var bytes = whole
                bytes[offset] ^= mask
                try Files.write(path, bytes)
                let (count, report) = try history.prefix(try history.open())
                let good = max(0, ends.filter { $0 <= offset }.count - 1)
                #expect(count == index * 4 + good, "byte \(offset)")
                let isLastFrame = index == 2 && good == 3
                #expect((report.damage != nil) == !isLastFrame, "byte \(offset)")
                #expect((report.cut != nil) == isLastFrame, "byte \(offset)")
            }
        }
    }

    @Test("a journal with a zeroed block ends before that block") func zeroedBlocks() throws {
        let history = try JournalHistory()
        let journal = try history.open()
        for _ in 0..<3 {
            try history.append(30, to: journal)
            _ = journal.rotate()
        }
        for (index, path) in try history.segments().enumerated() {
            let whole = try Files.read(path)
            let ends = try frames(path)
            for block in stride(from: 0, to: whole.count, by: 512) {
                var bytes = whole
                for offset in block..<min(block + 512, whole.count) { bytes[offset] = 0 }
                try Files.write(path, bytes)
                let (count, report) = try history.prefix(try history.open())
                let good = max(0, ends.filter { $0 <= block }.count - 1)
                #expect(count == index * 30 + good)
                let isLost = index < 2 || ends.contains { $0 >= block + 512 && $0 < whole.count }
                #expect((report.damage != nil) == isLost)
                #expect(report.damage != nil || report.cut != nil)
            }
            try Files.write(path, whole)
        }
    }

    @Test func aMissingSegmentIsDamage() throws {
        for missing in 0..<3 {
            let history = try JournalHistory.threeSegments()
            try Files.remove(try history.segments()[missing])
            let (found, report) = try history.open().groups()
            switch missing {
            case 0:
                // This looks as if a checkpoint had removed the segment. The report has the last sequence of the
                // segment, up to which LevelDB must then have all entries.
                #expect(found.map(\.last) == history.groups[4...].map(\.last))
                #expect(report.damage == nil && report.precedingSequence == history.groups[3].last)
                let known = history.groups[3].last
                #expect(try history.open().groups(known: known).groups.count == 8)
                // If LevelDB is known not to have the groups of the missing segment, the loss is reported.
                let (none, notified) = try history.open().groups(known: known - 1)
                #expect(none.isEmpty && notified.damage?.laterFrames == 8)
            case 1:
                #expect(found.map(\.last) == history.groups[..<4].map(\.last))
                #expect(report.damage?.segment == 3 && report.damage?.laterFrames == 4)
            default:
                #expect(found.count == 8 && report.damage == nil)
            }
        }
    }

    @Test func aSegmentThatIsNotAFileIsDamage() throws {
        let history = try JournalHistory.threeSegments()
        let path = try history.segments()[1]
        try Files.remove(path)
        try FileSystem.makeDirectory(path)
        let journal = try history.open()
        let (count, report) = try history.prefix(journal)
        #expect(count == 4 && report.damage?.segment == 2)
        try journal.setAside(report, to: history.directory.path + "/aside")
        #expect(try history.prefix(try history.open()).count == 4)
        #expect(try FileSystem.list(history.directory.path + "/aside").count == 2)
    }

    /// Damage of the synced part is distinguished from unsynced data that a power failure may lose.
    @Test func damageOfTheSyncedPartIsReported() throws {
        let history = try JournalHistory()
        let journal = try history.open()
        try history.append(5, to: journal)
        try journal.sync()
        try history.append(5, to: journal)
        let path = try history.segments()[0]
        let ends = try frames(path)
        for (frame, concernsSynced) in [(4, true), (5, false), (8, false)] {
            let whole = try Files.read(path)
            try Files.flip(path, at: ends[frame] + 10)
            let (count, report) = try history.prefix(try history.open())
            #expect(count == frame)
            #expect(report.damage?.concernsSynced == concernsSynced)
            try Files.write(path, whole)
        }
    }

    // MARK: Hostile bytes

    @Test func hugeLengthsAreRefusedBeforeAnythingIsAllocated() throws {
        let history = try JournalHistory.threeSegments()
        let path = try history.segments()[2]
        let whole = try Files.read(path)
        let ends = try frames(path)
        for length: UInt64 in [UInt64.max, 1 << 63, 1 << 63 - 1, 1 << 62, 1 << 32, UInt64(whole.count), 0] {
            for frame in 0..<4 {
                var bytes = whole
                withUnsafeBytes(of: length.bigEndian) {
                    bytes.replaceSubrange((ends[frame] + 8)..<(ends[frame] + 16), with: $0)
                }
                try Files.write(path, bytes)
                #expect(try history.prefix(try history.open()).count == 8 + frame)
            }
        }
    }

    /// Frames with correct checksums but invalid contents are damage.
    @Test func invalidContentsWithCorrectChecksumsAreDamage() throws {
        let payloads: [[UInt8]] = [
            [4], [1], [1, 0] + [UInt8](repeating: 0, count: 8), [1, 255, 0, 0, 0, 0, 0, 0, 0, 1, 48],
            [1, 1, 0, 0, 0, 0, 0, 0, 0, 1, 0xFF], [3, 0, 0, 0, 0], [2, 0, 0, 0, 0, 0, 0, 0, 0],
            [1, 1, 0, 0, 0, 0, 0, 0, 0, 1, 48, 3, 0, 1, 0, 1],
            [1, 1, 0, 0, 0, 0, 0, 0, 0, 1, 48, 3, 0xFF, 0xFF, 0xFF, 0xFF],
            [1, 1, 0, 0, 0, 0, 0, 0, 0, 1, 48, 2, 0, 0, 0, 1, 0xFF, 0xFF, 0xFF, 0xFF, 7],
            [1, 1, 0, 0, 0, 0, 0, 0, 0, 1, 48, 2, 0, 0, 0, 1, 0, 0, 0, 1, 7],
        ]
        let good: [UInt8] = [1, 1, 0, 0, 0, 0, 0, 0, 0, 1, 48, 3, 0, 0, 0, 1, 7]
        let next: UInt64 = 1000
        var cases = payloads.map { ($0, next, next, UInt64(0)) }
        cases += [(good, 1, next, 0), (good, next, next - 1, 0), (good, next, next, next)]
        for (index, (payload, first, last, synced)) in cases.enumerated() {
            let history = try JournalHistory.threeSegments()
            let path = try history.segments()[2]
            var bytes = try Files.read(path)
            let header = JournalFrameHeader(
                payloadBytes: payload.count, firstSequence: first, lastSequence: last, syncedSequence: synced)
            var frame = [UInt8](repeating: 0, count: JournalFormat.frameHeaderBytes) + payload
            frame.withUnsafeMutableBytes { header.seal($0, segment: 3, offset: bytes.count) }
            let offset = bytes.count
            bytes += frame
            try Files.write(path, bytes)
            let (count, report) = try history.prefix(try history.open())
            #expect(count == 12, "\(index)")
            #expect(report.damage?.offset == offset && report.cut == nil, "\(index)")
        }
    }

    /// A value that contains the bytes of a frame is not mistaken for a frame: a frame is valid only at the position at
    /// which it was written.
    @Test func bytesOfAFrameInsideAValueAreNotTakenForAFrame() throws {
        let history = try JournalHistory.threeSegments()
        let frame = Array(try Files.read(try history.segments()[2])[52...])
        let journal = try history.open()
        let group = JournalGroup(
            first: history.nextSequence, last: history.nextSequence, entries: [JournalEntry(key: [1], record: frame)])
        try journal.append(group)
        let path = try history.segments()[3]
        let whole = try Files.read(path)
        try Files.truncate(path, to: whole.count - 1)
        let (count, report) = try history.prefix(try history.open())
        #expect(count == 12 && report.damage == nil && report.cut?.bytes == whole.count - 1 - 52)
    }

    /// After damage, the journal searches for later frames up to a limit. If it reaches the limit, it assumes that
    /// frames are lost.
    @Test func theSearchForFramesAfterDamageIsLimited() throws {
        let history = try JournalHistory.threeSegments()
        let path = try history.segments()[2]
        var bytes = try Files.read(path)
        let size = 4 << 20
        bytes.reserveCapacity(bytes.count + size)
        let header = JournalFrameHeader(
            payloadBytes: size / 2, firstSequence: 1 << 40, lastSequence: 1 << 41, syncedSequence: 0)
        var frame = [UInt8](repeating: 0, count: header.frameBytes)
        frame.withUnsafeMutableBytes { header.seal($0, segment: 99, offset: 0) }
        bytes.append(0)
        while bytes.count < size { bytes += frame[..<40] }
        try Files.write(path, bytes)
        let (count, report) = try history.prefix(try history.open())
        #expect(count == 12)
        #expect(report.damage?.concernsSynced == true && report.damage?.laterFrames == 0)
    }

    @Test func randomlyDamagedSegmentsAreReplayedUpToTheDamage() throws {
        var random = SeededGenerator(seed: testSeed())
        let history = try JournalHistory.threeSegments(seed: random.next())
        let paths = try history.segments()
        let originals = try paths.map { try Files.read($0) }
        for round in 0..<1500 {
            var files = originals
            for _ in 0..<Int.random(in: 1...3, using: &random) {
                let file = Int.random(in: 0..<3, using: &random)
                guard !files[file].isEmpty else { continue }
                let index = Int.random(in: files[file].indices, using: &random)
                switch Int.random(in: 0..<7, using: &random) {
                case 0: files[file][index] = UInt8.random(in: 0...255, using: &random)
                case 1: files[file].insert(UInt8.random(in: 0...255, using: &random), at: index)
                case 2: files[file].remove(at: index)
                case 3: files[file].removeSubrange(index...)
                case 4: files[file] += files[Int.random(in: 0..<3, using: &random)][...]
                case 5: files[file].swapAt(index, Int.random(in: files[file].indices, using: &random))
                default:
                    let other = files[Int.random(in: 0..<3, using: &random)]
                    let length = min(Int.random(in: 1...200, using: &random), other.count, files[file].count - index)
                    files[file].replaceSubrange(index..<(index + length), with: other[..<length])
                }
            }
            for (path, bytes) in zip(paths, files) { try Files.write(path, bytes) }
            let journal = try history.open(readAheadBytes: random.oneIn(2) ? 37 : 1 << 20)
            let (count, report) = try history.prefix(journal)
            let found = try #require(count, "round \(round): not a prefix of the groups")
            if files == originals { #expect(found == 12) }
            if report.damage != nil {
                let place = history.directory.path + "/aside-\(round)"
                try journal.setAside(report, to: place)
                let (left, after) = try history.prefix(try history.open())
                #expect(left == found && after.damage == nil, "round \(round)")
                try Files.remove(place)
                for path in paths { try Files.remove(path) }
            }
        }
    }

    // MARK: Setting aside

    @Test func quarantiningDamageKeepsAllEarlierFrames() throws {
        for (segment, frame) in [(0, 0), (0, 2), (1, 0), (1, 3), (2, 0), (2, 1)] {
            let history = try JournalHistory.threeSegments()
            let place = history.directory.path + "/DAMAGED/one"
            let path = try history.segments()[segment]
            try Files.flip(path, at: try frames(path)[frame] + 41)
            let damaged = try history.segments().map { try Files.read($0) }
            let journal = try history.open()
            let (count, report) = try history.prefix(journal)
            #expect(count == segment * 4 + frame)
            // Appends fail until the damage is handled.
            let group = history.makeGroup()
            #expect(throws: FileError.self) { try journal.append(group) }
            #expect(try history.segments().map { try Files.read($0) } == damaged)
            try journal.setAside(report, to: place)
            // The files that were set aside are unchanged.
            let aside = try FileSystem.list(place).map { try Files.read(place + "/" + $0) }
            #expect(aside == Array(damaged[segment...]))
            let (left, after) = try history.prefix(try history.open())
            #expect(left == count && after.damage == nil && after.cut == nil)
            // The journal continues with a new segment, which has the next number.
            history.groups.removeSubrange((segment * 4 + frame)...)
            try journal.append(group)
            history.groups.append(group)
            #expect(journal.activeNumber == 4)
            #expect(try history.prefix(journal).count == history.groups.count)
            #expect(try history.prefix(try history.open()).count == history.groups.count)
        }
    }

    @Test func damageWhileRunningIsReported() throws {
        let history = try JournalHistory()
        let journal = try history.open()
        try history.append(8, to: journal)
        try journal.sync()
        let path = try history.segments()[0]
        // Damages the last frame. A new journal would ignore it as a frame that a crash left incomplete, but the
        // journal that wrote the frame reports damage.
        try Files.flip(path, at: try frames(path)[7] + 41)
        let (count, report) = try history.prefix(journal)
        #expect(count == 7 && report.damage != nil)
        let group = history.makeGroup()
        #expect(throws: FileError.self) { try journal.append(group) }
        try journal.setAside(report, to: history.directory.path + "/aside")
        history.groups.removeLast()
        try journal.append(group)
        history.groups.append(group)
        #expect(try history.prefix(try history.open()).count == 8)
    }

    /// A removed segment reappears after a power failure. It is ignored, because the header of the next segment records
    /// that no segment precedes it.
    @Test func aRemovedSegmentThatReappearsIsIgnoredAndRemoved() throws {
        let history = try JournalHistory()
        let journal = try history.open()
        try history.append(3, to: journal)
        let bytes = try Files.read(try history.segments()[0])
        try journal.removeSegments(upTo: try #require(journal.rotate()))
        history.groups = []
        try history.append(3, to: journal)
        try Files.write(history.path + "/0000000000000001.log", bytes)
        let reopened = try history.open()
        let (count, report) = try history.prefix(reopened)
        #expect(count == 3 && report.damage == nil)
        try reopened.removeSegments(upTo: 1)
        #expect(try history.segments().count == 1)
        #expect(try history.prefix(reopened).count == 3)
    }
}
