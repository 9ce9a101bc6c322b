/// The placeholders of reads of LevelDB in a shard, while they do not hold its lock, and of watches: they tell whether anything
/// happened to a key meanwhile. A value; the shard's lock guards it.
///
/// There are two kinds. A read of one key leaves the key's hash: there are as many of these as reading threads, a short list, and
/// nothing to allocate. A command with many keys, or a watch, leaves the key itself, because each write would go through a list
/// of a million.
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
        /// How many of these changes nobody can see.
        var unseenChanges: UInt64 = 0
    }

    /// Tells who left a key whether anything has happened to it since.
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

    /// Like ``mark(_:)``, but a change that nobody can see does not count.
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

    /// A key was written or removed. To a read of one key, another key with the same hash has changed too, which does no harm.
    mutating func changed(_ key: UnsafeRawBufferPointer, _ hash: Int) {
        changed(hash)
        if !keys.isEmpty { keys[Key(key)]?.changes += 1 }
    }

    /// The key was just written, in a way that nobody can see.
    mutating func noteUnseen(_ key: Key) { keys[key]?.unseenChanges += 1 }

    /// A key will be deleted from LevelDB because its entry has expired: what is being read of it is not kept. Watches do not
    /// notice.
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
