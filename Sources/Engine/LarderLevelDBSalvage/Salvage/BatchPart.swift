import LarderLevelDBFormat
import LarderPlatform

/// A batch (the content of a log record) with missing parts: its readable entries, and the range of keys that may be
/// missing.
struct BatchPart {
    private let record: LogRecord
    private let header: BatchScanner.Header
    private let ignored: Set<UInt8>

    /// The bytes of the complete entries between the batch's header and the missing part.
    private(set) var frontEntries: UnsafeRawBufferPointer
    private var frontCount: UInt64 = 0
    /// The last key before the missing part, not counting ignored keys. If the missing part begins within an entry with
    /// a readable key, that key.
    private var lower: [UInt8]?
    /// Whether the missing part begins within the entry with the key `lower`, so that this entry is lost too.
    private var isLowerLost = false
    /// The entry in which the missing part begins: its key, and the offset at which it should end; nil if unknown.
    private var cut: (key: [UInt8], end: Int)?
    /// Whether the keys before the missing part ascend.
    private(set) var isSorted = true

    /// The complete entries after the missing part: their offset in the tail, their number, and the first key that is
    /// not ignored (nil if all keys are ignored).
    typealias TailStart = (offset: Int, count: UInt64, key: [UInt8]?)

    /// Nil if the entries after the missing part cannot be found.
    private(set) var tailStart: TailStart?

    /// The maximum length in bytes of a tail in which entries are searched for: 2 MiB. Larder's batches have about 1
    /// MiB; a longer one consists of one long entry, so a search would be useless.
    private static let searchBytesMax = 2 << 20

    init(_ record: LogRecord, _ header: BatchScanner.Header, ignored: Set<UInt8>) {
        self.record = record
        self.header = header
        self.ignored = ignored
        frontEntries = UnsafeRawBufferPointer(rebasing: record.front[..<0])
    }

    /// Whether it is certain that no other record is lost, because the missing parts belong to this record only:
    /// - Each missing part has only *middle* fragments; if the end is missing, the last part is one *last* fragment.
    /// - Or the length of the cut entry shows that the missing part is within that entry.
    var provesNoOtherRecordIsMissing: Bool {
        guard let last = record.holes.last else { return false }
        if record.hasEnd, let offset = exactTailOffset, offset >= 0 { return true }
        let inner = record.hasEnd ? record.holes[...] : record.holes.dropLast()
        return inner.allSatisfy { $0.hole.claim == .middle } && (record.hasEnd || last.hole.claim == .last)
    }

    /// Reads the entries before the missing part. Returns false if the bytes are not a valid batch.
    mutating func readFront() -> Bool {
        let front = record.front
        var scanner = BatchScanner(front, from: BatchScanner.headerBytes)
        while frontCount < header.count, let entry = scanner.next() {
            frontCount += 1
            if isIgnored(entry.key) { continue }
            let key = Array(entry.key)
            if let lower, !KeyRange.isLess(lower, key) { isSorted = false }
            lower = key
        }
        guard frontCount < header.count else { return false }
        frontEntries = UnsafeRawBufferPointer(rebasing: front[..<scanner.offset])
        cut = scanner.cutEntry()
        if let key = cut?.key, !key.withUnsafeBytes(isIgnored) {
            if let lower, !KeyRange.isLess(lower, key) { isSorted = false }
            lower = key
            isLowerLost = true
        }
        return true
    }

    /// Finds the entries after the missing part, and sets ``tailStart``. Only for batches with ascending keys.
    mutating func readTail() {
        guard record.hasEnd, header.count > frontCount + 1 else { return }
        if let offset = exactTailOffset {
            tailStart = whole(from: offset)
        } else if let lower, record.tail.count <= Self.searchBytesMax {
            tailStart = search(behind: lower)
        }
    }

    /// The range that contains all missing keys. Only valid if the batch's keys ascend.
    var lostRange: KeyRange {
        let lower = lower.map { isLowerLost ? $0 : KeyRange.successor($0) } ?? []
        return KeyRange(lower: lower, upper: tailStart?.key)
    }

    /// The offset in the tail at which the incomplete entry ends; nil if the length of the entry or of the missing part
    /// is unknown.
    private var exactTailOffset: Int? {
        guard let cut, record.holes.count == 1, record.repaired.isEmpty, let hole = record.holes.first?.hole,
            let missing = hole.payloadCount
        else { return nil }
        let offset = cut.end - record.front.count - missing
        return offset >= 0 && offset < record.tail.count ? offset : nil
    }

    private func isIgnored(_ key: UnsafeRawBufferPointer) -> Bool { key.first.map { ignored.contains($0) } ?? false }

    /// Checks the entries of the tail from `offset`, where an entry must begin. Returns their beginning and their
    /// number; nil if any of them is invalid.
    private func whole(from offset: Int) -> TailStart? {
        var scanner = BatchScanner(record.tail, from: offset)
        var count: UInt64 = 0
        var first: [UInt8]?
        var previous = lower
        while let entry = scanner.next() {
            count += 1
            if isIgnored(entry.key) { continue }
            let key = Array(entry.key)
            if let previous, !KeyRange.isLess(previous, key) { return nil }
            previous = key
            first = first ?? key
        }
        guard scanner.isAtEnd, count > 0, count < header.count - frontCount else { return nil }
        return (offset, count, first)
    }

    /// Returns the first position in the tail at which a plausible series of entries begins: valid entries that follow
    /// each other exactly to the end, have ascending keys greater than `lower`, and are fewer than the missing entries.
    /// Searches from the end to the beginning, so that it checks each offset only once.
    private func search(behind lower: [UInt8]) -> TailStart? {
        let tail = record.tail
        let none: Int32 = -1
        // `counts` has the number of entries from each offset to the end, or `none` if no entry begins there. `places`
        // has the offset of the first of these entries whose key is not ignored.
        var counts = [Int32](repeating: none, count: tail.count + 1)
        var places = [Int32](repeating: none, count: tail.count + 1)
        counts[tail.count] = 0
        var best: Int?
        let most = header.count - frontCount - 1
        for offset in stride(from: tail.count - 1, through: 0, by: -1) {
            var scanner = BatchScanner(tail, from: offset)
            guard let entry = scanner.next(), counts[scanner.offset] != none else { continue }
            let next = places[scanner.offset]
            if isIgnored(entry.key) {
                places[offset] = next
            } else {
                if next != none {
                    var following = BatchScanner(tail, from: Int(next))
                    guard let later = following.next(), ByteOrder.compare(entry.key, later.key) < 0 else { continue }
                }
                places[offset] = Int32(offset)
            }
            counts[offset] = counts[scanner.offset] + 1
            if UInt64(counts[offset]) <= most, isBehind(lower, places[offset], tail) { best = offset }
        }
        return best.flatMap { whole(from: $0) }
    }

    /// Whether the key of the entry at `place` is greater than `lower`; false if there is no such entry.
    private func isBehind(_ lower: [UInt8], _ place: Int32, _ tail: UnsafeRawBufferPointer) -> Bool {
        var scanner = BatchScanner(tail, from: Int(place))
        guard place >= 0, let entry = scanner.next() else { return false }
        return lower.withUnsafeBytes { ByteOrder.compare($0, entry.key) < 0 }
    }
}
