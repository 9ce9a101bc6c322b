/// The purges of a database's tags as facts of the ``Ledger``. **On disk: do not change.**
enum TagFacts {
    private static let prefix = "tags/"
    private static let slash = UInt8(ascii: "/")

    /// Returns the key of a tag's ``TagPurges/Note``, or of the database's floors if `tag` is nil. The ledger has the
    /// floors since the first purge of a tag.
    static func key(_ database: String, _ tag: UInt64? = nil) -> [UInt8] {
        var key = Array((prefix + database).utf8)
        guard let tag else { return key }
        key.append(slash)
        BigEndian.append(tag, to: &key)
        return key
    }

    /// Whether this is the key of a database's floors.
    static func isFloors(_ key: [UInt8]) -> Bool { names(of: key).map { $0.tag == nil } ?? false }

    /// Returns the database of a fact, and the hash of its tag (nil for the floors); nil for other facts.
    static func names(of key: [UInt8]) -> (database: String, tag: UInt64?)? {
        guard key.starts(with: prefix.utf8) else { return nil }
        let rest = key.dropFirst(prefix.utf8.count)
        guard let end = rest.firstIndex(of: slash) else { return (String(decoding: rest, as: UTF8.self), nil) }
        guard let tag = BigEndian.numbers(1, in: rest[(end + 1)...])?.first else { return nil }
        return (String(decoding: rest[..<end], as: UTF8.self), tag)
    }

    /// Adds the purges in a fact's value to `content`.
    /// - Parameter now: the larder's time. A soft purge with a later time counts as made now, so that its entries stay
    ///   stale. This happens if the clock was set back and the record of time was lost.
    static func merge(
        _ value: some Collection<UInt8>, of tag: UInt64?, into content: inout TagPurges.Content, now: Int64
    ) {
        guard let numbers = BigEndian.numbers(3, in: value) else { return }
        let softAt = min(Int64(clamping: numbers[2]), now)
        content.merge(TagPurges.Note(hard: numbers[0], soft: numbers[1], softAt: softAt), of: tag)
    }

    static func change(_ note: TagPurges.Note, of tag: UInt64?, in database: String) -> Ledger.Change {
        let value = BigEndian.bytes([note.hard, note.soft, UInt64(max(0, note.softAt))])
        return Ledger.Change(key: key(database, tag), value: value)
    }

    /// Returns the changes of facts that turn the facts of `previous` into those of `new`.
    /// - Parameter tags: the tags whose notes may differ. Ignored if the floors differ: all previous notes were then
    ///   merged into the floors.
    static func changes(
        from previous: TagPurges, to new: TagPurges, of tags: [UInt64], in database: String
    ) -> [Ledger.Change] {
        guard new.floors == previous.floors else {
            var changes = [change(new.floors, of: nil, in: database)]
            previous.forEachNote { tag, _ in
                if new.note(tag) == nil { changes.append(Ledger.Change(key: key(database, tag), value: nil)) }
            }
            return changes
        }
        return Set(tags).compactMap { tag in new.note(tag).map { change($0, of: tag, in: database) } }
    }

    /// Returns all facts of these purges, for a ledger that has none of them yet.
    static func all(_ purges: TagPurges, of database: String) -> [Ledger.Change] {
        var changes = [change(purges.floors, of: nil, in: database)]
        purges.forEachNote { changes.append(change($1, of: $0, in: database)) }
        return changes
    }
}
