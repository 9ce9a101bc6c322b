/// The placeholders that reads of LevelDB leave in a shard while they have its lock not: what was read is kept in memory
/// only if nothing happened to the key meanwhile.
///
/// Each reader reads one key at a time, so that there are as many at once as threads that read: a list that is gone
/// through, and nothing to allocate. For watches and commands with many keys see ``Shard/beginColdRead(_:)``.
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

    /// Takes a placeholder back.
    /// - Returns: whether nothing happened to its key.
    mutating func end(_ number: Int) -> Bool {
        count -= 1
        places[number].isTaken = false
        return !places[number].isChanged
    }

    /// Something happened to the key of a hash. Another key of the same hash only is not kept.
    mutating func changed(_ hash: Int) {
        guard count > 0 else { return }
        for index in places.indices where places[index].hash == hash { places[index].isChanged = true }
    }

    /// Something may have happened to all keys.
    mutating func changedAll() {
        for index in places.indices { places[index].isChanged = true }
    }
}
