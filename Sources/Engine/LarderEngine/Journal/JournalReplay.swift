import LarderPlatform

/// A closure that receives the payload of a valid commit group and the group's last sequence. The bytes are valid only
/// during the call.
typealias JournalVisit = (UnsafeRawBufferPointer, UInt64) -> Void

/// One pass through the segments of a journal. It finds out which frames are valid, and why others are not.
///
/// The rules (docs/StorageFormat.md):
/// - The frames of a segment are valid up to the length in the header of the next segment. A bad frame within this
///   length is damage.
/// - In the last segment, the frames up to the first bad one are valid. If a good frame follows the bad one, that is
///   damage. Otherwise the rest is ignored as an incomplete write.
/// - The header of each segment contains the number of the previous segment, and the last sequence before this segment.
///   A mismatch is damage.
/// - Damage ends the valid part. Nothing after it is used.
struct JournalReplay {
    private(set) var report = JournalReport()
    private(set) var newerVersion: (segment: UInt64, version: UInt32)?
    /// The valid length of each undamaged segment.
    private(set) var ends: [(segment: JournalSegment, bytes: Int, sequence: UInt64)] = []
    /// Removed segments that exist again after a machine failure. They are detected by the header of a later segment,
    /// which records that no segment precedes it.
    private(set) var stale: [JournalSegment] = []
    /// Segments at the end that have neither a valid header nor frames, because the machine failed while they were
    /// created. Ordered by number, ascending.
    private(set) var headerless: [JournalSegment] = []

    private struct Item {
        let segment: JournalSegment
        /// Nil if there is no regular file with the segment's name.
        let reader: JournalReader?
        let header: Result<JournalSegmentHeader, JournalSegmentHeader.Defect>
    }
    private var items: [Item] = []
    private var sequence: UInt64 = 0
    private let known: UInt64
    private let mark: JournalMark?
    private let removed: UInt64

    /// Opens the files and reads their headers.
    /// - Parameters:
    ///   - known: the last sequence up to which everything is in LevelDB.
    ///   - marks: records what was synced and removed; nil if unknown.
    init(
        _ segments: [JournalSegment], known: UInt64, marks: JournalMarkFile?, readAheadBytes: Int, _ files: JournalFiles
    ) throws(FileError) {
        self.known = known
        (mark, removed) = (marks?.known, marks?.removed ?? 0)
        for segment in segments {
            try files.willRead(segment.path)
            let reader = try JournalReader(
                number: segment.number, path: segment.path, readAheadBytes: readAheadBytes)
            let header = try reader?.header() ?? .failure(.malformed("it is missing, or not a file"))
            reader?.release()
            if case .failure(.newerVersion(let version)) = header, newerVersion == nil {
                newerVersion = (segment.number, version)
            }
            items.append(Item(segment: segment, reader: reader, header: header))
        }
    }

    /// Visits the valid groups.
    mutating func run(_ visit: JournalVisit) throws(FileError) {
        try dropStillborn()
        dropStale()
        report.segments = items.count
        for index in items.indices {
            let continues = try read(index, visit)
            items[index].reader?.release()
            if !continues { break }
        }
        report.lastSequence = sequence
        requireSynced()
        // If no frame is valid, the journal ends with the last sequence that was removed from it.
        if report.damage != nil, sequence == 0, let mark { report.lastSequence = mark.removed }
    }

    /// Reports damage if the journal ends before the last synced sequence. Neither a crash nor a machine failure can
    /// lose synced groups.
    private mutating func requireSynced() {
        guard report.damage == nil, let mark, mark.synced > max(sequence, mark.removed) else { return }
        let missing =
            "the journal ends with sequence number \(max(sequence, mark.removed)), but all up to \(mark.synced) "
            + "had been synced to the disk"
        let cut = report.cut
        report.cut = nil
        report.damage = JournalDamage(
            segment: cut?.segment ?? items.last?.segment.number ?? 0,
            offset: cut?.offset ?? ends.last?.bytes ?? 0,
            reason: cut.map { "\($0.reason); \(missing)" } ?? missing,
            unusedBytes: cut?.bytes ?? 0, laterFrames: 0, concernsSynced: true)
    }

    private mutating func dropStillborn() throws(FileError) {
        // Stop at a segment that this process has created: it has a header, and its `byteCount` is set.
        while let last = items.last, last.segment.byteCount == nil, let reader = last.reader,
            case .failure = last.header
        {
            var later = JournalReader.Later()
            try reader.search(from: 0, above: 0, &later)
            reader.release()
            if later.frames > 0 || later.isIncomplete { return }
            // Report a cut even if the file is empty now, because it is unknown what the file contained.
            report.cut = JournalCut(
                segment: last.segment.number, offset: 0, bytes: reader.fileBytes,
                reason: "the segment has no valid header and no groups")
            headerless.insert(last.segment, at: 0)
            items.removeLast()
        }
    }

    private mutating func dropStale() {
        let first = items.lastIndex { item in
            if case .success(let header) = item.header { return header.previousNumber == 0 }
            return false
        }
        guard let first else { return }
        stale = items[..<first].map(\.segment)
        items.removeFirst(first)
    }

    // MARK: One segment

    /// - Returns: whether to continue with the next segment.
    private mutating func read(_ index: Int, _ visit: JournalVisit) throws(FileError) -> Bool {
        let item = items[index]
        if let defect = checkHeader(index) { return try damage(index, at: 0, defect) }
        guard let reader = item.reader else { return try damage(index, at: 0, "it is not a file") }
        let limit = limit(of: index)
        let end = min(limit ?? reader.fileBytes, reader.fileBytes)
        var offset = JournalFormat.segmentHeaderBytes
        if let limit, limit < offset {
            return try damage(index, at: 0, "its recorded length is shorter than its header")
        }
        while offset < end {
            switch try reader.frame(at: offset, limit: end) {
            case .good(let header, let payload):
                guard header.firstSequence > sequence, header.lastSequence >= header.firstSequence,
                    header.syncedSequence < header.firstSequence
                else { return try damage(index, at: offset, "the sequences do not increase") }
                guard let operations = JournalPayload.operationCount(payload) else {
                    return try damage(index, at: offset, "the operations are malformed")
                }
                visit(payload, header.lastSequence)
                sequence = header.lastSequence
                offset += header.frameBytes
                report.frames += 1
                report.operations += operations
                report.bytes += header.frameBytes
            case .bad(let reason):
                guard limit == nil, index == items.count - 1 else { return try damage(index, at: offset, reason) }
                var later = JournalReader.Later()
                try reader.search(from: offset + 1, above: sequence, &later)
                if later.frames > 0 || later.isIncomplete { return try damage(index, at: offset, reason) }
                report.cut = JournalCut(
                    segment: item.segment.number, offset: offset, bytes: reader.fileBytes - offset, reason: reason)
                ends.append((item.segment, offset, sequence))
                return false
            }
        }
        if let limit, limit > end {
            return try damage(index, at: offset, "the file is shorter than its recorded length")
        }
        ends.append((item.segment, offset, sequence))
        return true
    }

    /// - Returns: the reason why a segment cannot follow the previous one; nil if it can.
    private mutating func checkHeader(_ index: Int) -> String? {
        switch items[index].header {
        case .failure(.malformed(let reason)): return reason
        case .failure(.newerVersion(let version)): return "it has version \(version)"
        case .success(let header):
            if index == 0 {
                report.precedingSequence = header.previousSequence
                guard header.previousSequence <= known else {
                    return "it follows sequence number \(header.previousSequence), but LevelDB has only those up to "
                        + "\(known)"
                }
                if let mark, header.previousNumber != 0, header.previousSequence > mark.removed {
                    return "it follows \(JournalFormat.fileName(header.previousNumber)), which is missing and was not "
                        + "removed by Larder"
                }
                sequence = header.previousSequence
                return nil
            }
            if header.previousNumber != items[index - 1].segment.number {
                return "it follows \(JournalFormat.fileName(header.previousNumber)), which is missing"
            }
            return header.previousSequence == sequence
                ? nil : "it follows sequence \(header.previousSequence), but the previous segment ends with \(sequence)"
        }
    }

    /// Returns the valid length of a segment; nil if unknown.
    private func limit(of index: Int) -> Int? {
        if let known = items[index].segment.byteCount { return known }
        guard index + 1 < items.count, case .success(let next) = items[index + 1].header,
            next.previousNumber == items[index].segment.number
        else { return nil }
        return Int(clamping: next.previousBytes)
    }

    // MARK: Damage

    /// Reports damage.
    /// - Returns: always false, because nothing after the damage is valid.
    private mutating func damage(_ index: Int, at offset: Int, _ reason: String) throws(FileError) -> Bool {
        var later = JournalReader.Later()
        var unused = -offset
        // Frames up to this sequence are not lost: they are valid, or their entries are in LevelDB.
        let kept = max(sequence, known == .max ? 0 : known, removed)
        for (position, item) in items[index...].enumerated() {
            guard let reader = item.reader else { continue }
            unused += reader.fileBytes
            try reader.search(from: position == 0 && offset > 0 ? offset + 1 : 0, above: kept, &later)
            reader.release()
        }
        // Operations of the ledger (an internal database) are synced before they are acknowledged. So if later frames
        // have such operations, assume that they were synced, unless a mark shows that they were not.
        let isMarked = mark.map { $0.synced > kept } ?? later.hasFacts
        report.cut = nil
        report.damage = JournalDamage(
            segment: items[index].segment.number, offset: offset, reason: reason, unusedBytes: max(0, unused),
            laterFrames: later.frames,
            concernsSynced: later.syncedSequence > kept || later.isIncomplete || isMarked)
        return false
    }
}

/// The invalid end of the last segment, which was being written when the process or the machine stopped.
struct JournalCut: Equatable, Sendable {
    let segment: UInt64
    let offset: Int
    let bytes: Int
    let reason: String
}

/// Damage: the place after which the journal cannot be used, although more groups follow or should follow.
struct JournalDamage: Equatable, Sendable, CustomStringConvertible {
    let segment: UInt64
    /// The offset in the segment's file; 0 if nothing of the segment is valid.
    let offset: Int
    let reason: String
    /// The number of bytes after the place, including all later segments.
    let unusedBytes: Int
    /// The number of good frames among the unused bytes.
    let laterFrames: Int
    /// Whether synced frames are missing. If not, a machine failure may be the cause: the system writes pages in any
    /// order, so after a failure, unsynced files can have holes.
    let concernsSynced: Bool

    var description: String {
        // The segment is 0 if the journal has no segments.
        segment == 0
            ? reason
            : "segment \(JournalFormat.fileName(segment)) at byte \(offset): \(reason); \(unusedBytes) bytes with "
                + "\(laterFrames) valid groups cannot be used"
    }
}

/// The result of a replay.
struct JournalReport: Equatable, Sendable {
    /// The last valid sequence; 0 if there is none.
    var lastSequence: UInt64 = 0
    /// The last sequence before the first segment. Segments with earlier sequences were removed or are missing.
    var precedingSequence: UInt64 = 0
    var segments = 0
    var frames = 0
    var operations = 0
    /// The size of the valid frames, in bytes.
    var bytes = 0
    var cut: JournalCut?
    var damage: JournalDamage?
}
