/// The placeholders in a shard of reads of LevelDB that do not hold its lock, and of watches: they record whether a key
/// was changed in the meantime. A value; the shard's lock guards it.
///
/// There are two kinds. A read of one key leaves the key's hash: there are as many of these as reading threads, a short
/// list, and nothing to allocate. A command with many keys, or a watch, leaves the key itself, because otherwise each
/// write would search a list of a million.
struct InFlightReads {
    private struct Place {
        var hash = 0
        var isTaken = false
        var isChanged = false
    }

    private struct KeyPlace {
        var readers = 0
        /// Increases when the key is written.
        var changes: UInt64 = 0
        /// The number of these changes that are not visible to readers.
        var unseenChanges: UInt64 = 0
    }

    /// Records the state of a key, to detect later changes.
    struct Mark: Equatable {
        let changes: UInt64
        let wholeChanges: UInt64
    }

    private var places: ContiguousArray<Place> = []
    private var count = 0
    private var keys: [Key: KeyPlace] = [:]
    /// Increases with every change of all keys at once: a purge, a failed commit.
    private var wholeChanges: UInt64 = 0

    // MARK: One key

    /// Leaves a placeholder for the key of a hash.
    /// - Returns: its number, for ``end(_:)``.
    mutating func begin(_ hash: Int) -> Int {
        count += 1
        let place = Place(hash: hash, isTaken: true)
        if let free = places.firstIndex(where: { !$0.isTaken }) {
            places[free] = place
            return free
        }
        places.append(place)
        return places.count - 1
    }

    /// Removes a placeholder.
    /// - Returns: whether its key is unchanged.
    mutating func end(_ number: Int) -> Bool {
        count -= 1
        places[number].isTaken = false
        return !places[number].isChanged
    }

    // MARK: Many keys, and watches

    /// Leaves a placeholder for a key. Needs an ``end(_:)``.
    mutating func begin(_ key: Key) -> Mark {
        keys[key, default: KeyPlace()].readers += 1
        return mark(key)
    }

    /// The state of a key with a placeholder.
    func mark(_ key: Key) -> Mark { Mark(changes: keys[key]?.changes ?? 0, wholeChanges: wholeChanges) }

    /// Like ``mark(_:)``, but ignores changes that are not visible to readers.
    func markOfWatch(_ key: Key) -> Mark {
        let place = keys[key] ?? KeyPlace()
        return Mark(changes: place.changes - place.unseenChanges, wholeChanges: wholeChanges)
    }

    mutating func end(_ key: Key) {
        guard var place = keys[key] else { return }
        place.readers -= 1
        keys[key] = place.readers > 0 ? place : nil
    }

    // MARK: Changes of keys

    /// Records that a key was written or removed. A read of another key with the same hash sees a change too, which
    /// does no harm.
    mutating func changed(_ key: UnsafeRawBufferPointer, _ hash: Int) {
        changed(hash)
        if !keys.isEmpty { keys[Key(key)]?.changes += 1 }
    }

    /// Records that the last write of the key was not visible to readers.
    mutating func noteUnseen(_ key: Key) { keys[key]?.unseenChanges += 1 }

    /// Records that a key will be deleted from LevelDB because its entry has expired: a read under way must not keep
    /// it. Watches do not notice.
    mutating func swept(_ hash: Int) { changed(hash) }

    private mutating func changed(_ hash: Int) {
        guard count > 0 else { return }
        for index in places.indices where places[index].hash == hash { places[index].isChanged = true }
    }

    /// Records that all keys may have changed.
    mutating func changedAll() {
        wholeChanges += 1
        for index in places.indices { places[index].isChanged = true }
    }
}
