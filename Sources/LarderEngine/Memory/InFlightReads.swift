/// The placeholders of reads of LevelDB in a shard, while they do not hold its lock: the result is kept in memory only
/// if nothing happened to the key meanwhile.
///
/// Each reader reads one key at a time, so there are as many placeholders as reading threads: a short list, and nothing
/// to allocate. For watches and commands with many keys see ``Shard/beginColdRead(_:)``.
struct InFlightReads {
    private struct Place {
        var hash = 0
        var isTaken = false
        var isChanged = false
    }

    private var places: ContiguousArray<Place> = []
    private var count = 0

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

    /// Something happened to the key with a hash. Another key with the same hash is then not kept, which does no harm.
    mutating func changed(_ hash: Int) {
        guard count > 0 else { return }
        for index in places.indices where places[index].hash == hash { places[index].isChanged = true }
    }

    /// Something may have happened to all keys.
    mutating func changedAll() {
        for index in places.indices { places[index].isChanged = true }
    }
}
