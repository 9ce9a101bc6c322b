/// The reads of LevelDB that are under way without the lock of the shard that this belongs to, and the keys that are watched:
/// whether anything happened to them meanwhile. A value; the shard's lock guards it.
///
/// There are placeholders of two kinds. Who reads one key leaves the key's hash: there are as many at once as threads that
/// read, a list that is gone through, and nothing to allocate. Who reads many, or watches, leaves the key itself, because a list
/// of a million would be gone through with every write.
struct InFlightReads {
    private struct Place {
        var hash = 0
        var isTaken = false
        var isChanged = false
    }

    private struct KeyPlace {
        var readers = 0
        /// Goes up when the key is written.
        var changes: UInt64 = 0
        /// How many of these changes nobody can see.
        var unseenChanges: UInt64 = 0
    }

    /// By which who left a key can tell that nothing happened to it since.
    struct Mark: Equatable {
        let changes: UInt64
        let wholeChanges: UInt64
    }

    private var places: ContiguousArray<Place> = []
    private var count = 0
    private var keys: [Key: KeyPlace] = [:]
    /// Goes up with every change of all keys at once: a purge, a failed commit.
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
    /// - Returns: whether nothing happened to its key.
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

    /// For a key with a placeholder.
    func mark(_ key: Key) -> Mark { Mark(changes: keys[key]?.changes ?? 0, wholeChanges: wholeChanges) }

    /// As ``mark(_:)``, where a change that nobody can see is none.
    func markOfWatch(_ key: Key) -> Mark {
        let place = keys[key] ?? KeyPlace()
        return Mark(changes: place.changes - place.unseenChanges, wholeChanges: wholeChanges)
    }

    mutating func end(_ key: Key) {
        guard var place = keys[key] else { return }
        place.readers -= 1
        keys[key] = place.readers > 0 ? place : nil
    }

    // MARK: What happens to keys

    /// A key was written or removed. Another key of the same hash counts as changed too for who reads one.
    mutating func changed(_ key: UnsafeRawBufferPointer, _ hash: Int) {
        changed(hash)
        if !keys.isEmpty { keys[Key(key)]?.changes += 1 }
    }

    /// A key was written just now, in a way that nobody can see.
    mutating func noteUnseen(_ key: Key) { keys[key]?.unseenChanges += 1 }

    /// The key of a hash is about to be deleted from LevelDB because its entry expired: what is being read of it is not kept.
    /// Who watches sees nothing of that.
    mutating func swept(_ hash: Int) { changed(hash) }

    private mutating func changed(_ hash: Int) {
        guard count > 0 else { return }
        for index in places.indices where places[index].hash == hash { places[index].isChanged = true }
    }

    /// Something may have happened to all keys.
    mutating func changedAll() {
        wholeChanges += 1
        for index in places.indices { places[index].isChanged = true }
    }
}
