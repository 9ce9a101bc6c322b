/// The tags of an entry, checked and encoded: a count, then for each tag its length and its bytes.
package struct Tags: Hashable, Sendable {
    let encoded: [UInt8]

    /// The longest part of a record that tags take: the stamp, the count, and the tags.
    static let sectionBytesMax = 8 + 1 + TagRules.countMax * (1 + TagRules.bytesMax)

    /// Checks tags. Of equal ones, one is kept.
    package init(checking tags: some Collection<[UInt8]>) throws(TagRules.Impossible) {
        let tags = try TagRules.checked(tags)
        encoded = tags.reduce(into: [UInt8(tags.count)]) { bytes, tag in
            bytes.append(UInt8(tag.count))
            bytes += tag
        }
    }

    /// Their hashes, by which purges know them.
    var hashes: [UInt64] { all.map { $0.withUnsafeBytes { TagPurges.hash($0) } } }

    package var isEmpty: Bool { encoded[0] == 0 }

    package var all: [[UInt8]] {
        var tags: [[UInt8]] = []
        encoded.withUnsafeBytes { bytes in _ = Self.read(bytes) { tags.append([UInt8]($0)) } }
        return tags
    }

    /// Reads encoded tags.
    /// - Returns: how many bytes they take; nil if that is more than there are.
    static func read(_ bytes: UnsafeRawBufferPointer, _ body: (UnsafeRawBufferPointer) -> Void = { _ in }) -> Int? {
        guard let count = bytes.first, count > 0 else { return nil }
        var place = 1
        for _ in 0..<count {
            guard place < bytes.count else { return nil }
            let end = place + 1 + Int(bytes[place])
            guard end <= bytes.count, end > place + 1 else { return nil }
            body(UnsafeRawBufferPointer(rebasing: bytes[(place + 1)..<end]))
            place = end
        }
        return place
    }

    /// The part of a record: the stamp, then the tags.
    /// - Parameter stamp: a sequence that is at least as high as that of every earlier purge, and lower than that of
    ///   every later one.
    func section(stamp: UInt64) -> [UInt8] {
        var bytes: [UInt8] = []
        BigEndian.append(stamp, to: &bytes)
        return bytes + encoded
    }

    /// The tags in a part of a record that was read before.
    init?(section: some Collection<UInt8>) {
        guard section.count > 8 else { return nil }
        encoded = Array(section.dropFirst(8))
    }
}

/// Which tags of a database were purged, and when. A value class: never changed, so that it can be read without a lock.
package final class TagPurges: Sendable {
    /// The purges of one tag.
    struct Note: Hashable, Sendable {
        /// Entries with a lower stamp are gone; 0: none.
        var hard: UInt64 = 0
        /// Entries with a lower stamp are stale since ``softAt``; 0: none.
        var soft: UInt64 = 0
        /// In milliseconds since 1970.
        var softAt: Int64 = 0
    }

    /// The most tags whose purges are remembered one by one.
    package static let notesMax = 65_536
    private static let stripeCount = 256

    /// By the hash of the tag. Two tags with the same hash count as one, which may remove too much, and never keeps
    /// what was purged.
    private let stripes: [[UInt64: Note]]
    /// How many notes there are.
    let count: Int
    /// All entries with tags and a lower stamp are gone.
    let floor: UInt64
    /// The highest sequence of all purges.
    let last: UInt64
    /// How many lines their file has, at most.
    private let lineCount: Int

    init() {
        stripes = Array(repeating: [:], count: Self.stripeCount)
        (count, floor, last, lineCount) = (0, 0, 0, 0)
    }

    private init(_ stripes: [[UInt64: Note]], count: Int, floor: UInt64, last: UInt64, lineCount: Int) {
        self.stripes = stripes
        (self.count, self.floor, self.last, self.lineCount) = (count, floor, last, lineCount)
    }

    /// These purges and another one. Beyond the limit all entries with tags that were stored before go.
    /// - Parameters:
    ///   - tags: their hashes.
    ///   - sequence: of the purge.
    ///   - softAt: nil for a purge that removes; else from when the entries are stale.
    func adding(_ tags: [UInt64], _ sequence: UInt64, softAt: Int64?) -> TagPurges {
        var stripes = stripes
        var count = count
        for hash in tags {
            let stripe = Self.stripe(hash)
            var note = stripes[stripe][hash] ?? Note()
            if note == Note() { count += 1 }
            if let softAt {
                // Entries that are stale since an earlier one stay so, and may serve a little longer.
                (note.soft, note.softAt) = (sequence, softAt)
            } else {
                note.hard = sequence
            }
            stripes[stripe][hash] = note
        }
        guard count <= Self.notesMax else { return .everything(before: sequence) }
        return TagPurges(
            stripes, count: count, floor: floor, last: max(last, sequence), lineCount: lineCount + tags.count)
    }

    /// Whether the file has many lines that no longer count.
    var hasManyLines: Bool { lineCount > 4 * count + 4096 }

    /// The same purges, in a file that was made anew.
    var madeAnew: TagPurges { TagPurges(stripes, count: count, floor: floor, last: last, lineCount: 2 * count + 1) }

    /// Everything with a tag that was stored before a sequence is gone.
    static func everything(before sequence: UInt64) -> TagPurges {
        TagPurges(TagPurges().stripes, count: 0, floor: sequence, last: sequence, lineCount: 1)
    }

    /// These purges and one of everything with tags.
    func raising(to sequence: UInt64) -> TagPurges {
        TagPurges(
            stripes, count: count, floor: max(floor, sequence), last: max(last, sequence), lineCount: lineCount + 1)
    }

    func forEach(_ body: (UInt64, Note) -> Void) {
        for stripe in stripes { for (tag, note) in stripe { body(tag, note) } }
    }

    private static func stripe(_ hash: UInt64) -> Int { Int(hash >> 32) & (stripeCount - 1) }

    /// The hash of a tag, which is on the disk too: FNV-1a with 64 bits (Fowler, Noll, Vo; RFC 9923).
    static func hash(_ tag: UnsafeRawBufferPointer) -> UInt64 {
        tag.reduce(0xCBF2_9CE4_8422_2325) { ($0 ^ UInt64($1)) &* 0x100_0000_01B3 }
    }

    private func note(_ tag: UnsafeRawBufferPointer) -> Note? {
        let hash = Self.hash(tag)
        return stripes[Self.stripe(hash)][hash]
    }

    /// From when on an entry is not fresh because of its tags: `min` if it is gone, `max` if nothing was purged.
    /// - Parameter section: the part of the record, with a stamp and complete tags.
    func end(of section: UnsafeRawBufferPointer) -> Int64 {
        guard let stamp = BigEndian.read(section, at: 0) else { return .min }
        if stamp < floor { return .min }
        guard stamp < last, count > 0 else { return .max }
        var end = Int64.max
        _ = Tags.read(UnsafeRawBufferPointer(rebasing: section[8...])) { tag in
            guard let note = note(tag) else { return }
            if stamp < note.hard { end = .min } else if stamp < note.soft { end = min(end, note.softAt) }
        }
        return end
    }

    /// The highest sequence of the purges of some tags.
    func last(of tags: Tags) -> UInt64 {
        var highest = floor
        tags.encoded.withUnsafeBytes { bytes in
            _ = Tags.read(bytes) { tag in
                guard let note = note(tag) else { return }
                highest = max(highest, note.hard, note.soft)
            }
        }
        return highest
    }
}
