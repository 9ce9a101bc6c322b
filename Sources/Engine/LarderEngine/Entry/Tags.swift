import LarderPlatform

/// The tags of an entry, checked and encoded: a count, then for each tag its length and its bytes.
package struct Tags: Hashable, Sendable {
    let encoded: [UInt8]

    /// The maximum length of a record's tags section (the stamp, the number of tags, and the tags), in bytes.
    static let sectionBytesMax = 8 + 1 + TagRules.countMax * (1 + TagRules.bytesMax)

    /// Checks tags, and removes duplicates.
    package init(checking tags: some Collection<[UInt8]>) throws(TagRules.Impossible) {
        let tags = try TagRules.checked(tags)
        encoded = tags.reduce(into: [UInt8(tags.count)]) { bytes, tag in
            bytes.append(UInt8(tag.count))
            bytes += tag
        }
    }

    /// The hashes of the tags, by which purges identify them.
    var hashes: [UInt64] { all.map { $0.withUnsafeBytes { TagPurges.hash($0) } } }

    package var isEmpty: Bool { encoded[0] == 0 }

    package var all: [[UInt8]] {
        var tags: [[UInt8]] = []
        encoded.withUnsafeBytes { bytes in _ = Self.read(bytes) { tags.append([UInt8]($0)) } }
        return tags
    }

    /// Reads encoded tags.
    /// - Returns: the length of the encoded tags; nil if they would extend beyond `bytes`.
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

    /// Returns the tags section of a record: the stamp, then the tags.
    /// - Parameter stamp: a sequence that is at least as high as that of every earlier purge, and lower than that of
    ///   every later one.
    func section(stamp: UInt64) -> [UInt8] {
        var bytes: [UInt8] = []
        BigEndian.append(stamp, to: &bytes)
        return bytes + encoded
    }

    /// Takes the tags from the tags section of a record whose header was parsed before.
    init?(section: some Collection<UInt8>) {
        guard section.count > 8 else { return nil }
        encoded = Array(section.dropFirst(8))
    }
}

/// The purges of a database's tags. Immutable, so that it can be read without a lock.
package final class TagPurges: Sendable {
    /// The last purges of one tag, or of all entries with tags, whatever their tags are (the *floors*). Floors replace
    /// the purges of single tags if these are too many.
    struct Note: Hashable, Sendable {
        /// The sequence of the last hard purge: entries with a lower stamp count as removed. 0 if there was none.
        var hard: UInt64 = 0
        /// The sequence of the last soft purge: entries with a lower stamp are stale since ``softAt``. 0 if there was
        /// none.
        var soft: UInt64 = 0
        /// When the last soft purge was made, in milliseconds since 1970.
        var softAt: Int64 = 0

        fileprivate mutating func merge(_ other: Note) {
            hard = max(hard, other.hard)
            if other.soft > soft { (soft, softAt) = (other.soft, other.softAt) }
        }
    }

    /// The maximum number of tags whose purges are stored individually.
    package static let notesMax = 65_536
    fileprivate static let stripeCount = 256

    /// Purges that are being combined, in any order. For each tag, the latest hard purge and the latest soft purge are
    /// kept.
    struct Content {
        /// The purges by the hashes of the tags. Two tags with the same hash are treated as one, which may remove too
        /// much, but never keeps a purged entry.
        fileprivate var stripes: [[UInt64: Note]] = Array(repeating: [:], count: TagPurges.stripeCount)
        fileprivate var count = 0
        fileprivate var floors = Note()
        fileprivate var last: UInt64 = 0

        /// Adds the purges of a tag, or floors if `tag` is nil.
        mutating func merge(_ note: Note, of tag: UInt64?) {
            last = max(last, note.hard, note.soft)
            guard let tag else { return floors.merge(note) }
            var merged = stripes[stripe(tag)][tag] ?? Note()
            merged.merge(note)
            set(merged, of: tag)
        }

        fileprivate mutating func set(_ note: Note, of tag: UInt64) {
            if stripes[stripe(tag)].updateValue(note, forKey: tag) == nil { count += 1 }
        }
    }

    private let content: Content

    /// The number of tags that have a ``Note``.
    var count: Int { content.count }
    var floors: Note { content.floors }
    /// The highest commit sequence number of all purges.
    var last: UInt64 { content.last }

    init(_ content: Content = Content()) { self.content = content }

    /// Returns these purges and another one. If more than ``notesMax`` tags are then purged, returns a purge of all
    /// tagged entries that were stored before this purge.
    /// - Parameters:
    ///   - tags: the hashes of the purged tags.
    ///   - sequence: the sequence of the purge.
    ///   - softAt: when the entries become stale, in milliseconds since 1970; nil for a hard purge, which removes them.
    func adding(_ tags: [UInt64], _ sequence: UInt64, softAt: Int64?) -> TagPurges {
        var next = content
        for tag in tags {
            var note = note(tag) ?? Note()
            if let softAt {
                // Entries that are stale since an earlier purge stay stale. They may be served a little longer, because
                // their grace begins again.
                (note.soft, note.softAt) = (sequence, softAt)
            } else {
                note.hard = sequence
            }
            next.set(note, of: tag)
        }
        next.last = max(next.last, sequence)
        if next.count <= Self.notesMax { return TagPurges(next) }
        var all = Content()
        all.merge(floors, of: nil)
        all.merge(Note(hard: sequence), of: nil)
        return TagPurges(all)
    }

    /// Returns these purges combined with others.
    func adding(_ others: TagPurges) -> TagPurges {
        var next = content
        next.merge(others.floors, of: nil)
        others.forEachNote { next.merge($1, of: $0) }
        return TagPurges(next)
    }

    /// Returns these purges combined with floors. The higher of the old and the new floors apply.
    func adding(_ floors: Note) -> TagPurges {
        var next = content
        next.merge(floors, of: nil)
        return TagPurges(next)
    }

    func forEachNote(_ body: (UInt64, Note) -> Void) {
        for stripe in content.stripes { for (tag, note) in stripe { body(tag, note) } }
    }

    func note(_ hash: UInt64) -> Note? { content.stripes[stripe(hash)][hash] }

    /// Returns the hash of a tag. These hashes are also on the disk.
    static func hash(_ tag: UnsafeRawBufferPointer) -> UInt64 { StableHash.fnv1a(tag) }

    private func note(_ tag: UnsafeRawBufferPointer) -> Note? { note(Self.hash(tag)) }

    /// Returns when the freshness of an entry ends because of purges of its tags, in milliseconds since 1970: `min` if
    /// a purge removed it, `max` if no tag was purged.
    /// - Parameter section: the tags section of the record, complete.
    func end(of section: UnsafeRawBufferPointer) -> Int64 {
        guard let stamp = BigEndian.read(section, at: 0) else { return .min }
        guard stamp < last else { return .max }
        if stamp < floors.hard { return .min }
        var end = stamp < floors.soft ? floors.softAt : Int64.max
        guard count > 0 else { return end }
        _ = Tags.read(UnsafeRawBufferPointer(rebasing: section[8...])) { tag in
            guard let note = note(tag) else { return }
            if stamp < note.hard { end = .min } else if stamp < note.soft { end = min(end, note.softAt) }
        }
        return end
    }

    /// Returns the highest sequence of the purges that concern some tags.
    func last(of tags: Tags) -> UInt64 {
        var highest = max(floors.hard, floors.soft)
        tags.encoded.withUnsafeBytes { bytes in
            _ = Tags.read(bytes) { tag in
                guard let note = note(tag) else { return }
                highest = max(highest, note.hard, note.soft)
            }
        }
        return highest
    }
}

private func stripe(_ hash: UInt64) -> Int { Int(hash >> 32) & (TagPurges.stripeCount - 1) }
