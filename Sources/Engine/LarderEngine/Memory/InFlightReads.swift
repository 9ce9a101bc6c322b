/// Placeholders in a shard that record whether keys are changed during an operation: a read of LevelDB without the
/// shard's lock, or a watch (the WATCH command). A value; the shard's lock guards it.
///
/// There are two kinds. A read of one key stores the key's hash in a list. The list has at most one element per reading
/// thread, and needs no allocation. A command with many keys, or a watch, stores each key in a dictionary. In a list,
/// each write might have to search a million keys.
struct InFlightReads {
    private struct Place {
        var hash = 0
        var isTaken = false
        var isChanged = false
    }

    private struct KeyPlace {
        var readers = 0
        /// The number of changes of the key since its first placeholder was added.
        var changes: UInt64 = 0
        /// The number of these changes that readers cannot see.
        var unseenChanges: UInt64 = 0
    }

    /// A state of a key. If a later mark of the key differs, the key was changed.
    struct Mark: Equatable {
        let changes: UInt64
        let wholeChanges: UInt64
    }

    private var places: ContiguousArray<Place> = []
    private var count = 0
    private var keys: [Key: KeyPlace] = [:]
    /// The number of events that affected all keys, such as a purge or a failed commit.
    private var wholeChanges: UInt64 = 0

    // MARK: One key

    /// Adds a placeholder for a key with this hash.
    /// - Returns: the placeholder's number, for ``end(_:)``.
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

    /// Removes a placeholder that was added by hash.
    /// - Returns: true if the key was not changed in the meantime.
    mutating func end(_ number: Int) -> Bool {
        count -= 1
        places[number].isTaken = false
        return !places[number].isChanged
    }

    // MARK: Many keys, and watches

    /// Adds a placeholder for a key. An ``end(_:)`` must follow.
    mutating func begin(_ key: Key) -> Mark {
        keys[key, default: KeyPlace()].readers += 1
        return mark(key)
    }

    /// Returns the present mark of a key that has a placeholder.
    func mark(_ key: Key) -> Mark { Mark(changes: keys[key]?.changes ?? 0, wholeChanges: wholeChanges) }

    /// Returns the mark of a key for a watch, which ignores changes that readers cannot see.
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

    /// Records that a key was written or removed. A read of another key with the same hash also detects a change. That
    /// does no harm: the read returns its result, but does not add it to memory.
    mutating func changed(_ key: UnsafeRawBufferPointer, _ hash: Int) {
        changed(hash)
        if !keys.isEmpty { keys[Key(key)]?.changes += 1 }
    }

    /// Records that the last write of the key was not visible to readers.
    mutating func noteUnseen(_ key: Key) { keys[key]?.unseenChanges += 1 }

    /// Records that the expired entry of a key will be deleted from LevelDB. A read in progress then does not add this
    /// entry to memory. For watches, this is not a change.
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
