import Threading

/// An entry that is applied but not yet in LevelDB.
struct PendingEntry {
    /// The commit unit that will write it.
    let sequence: UInt64
    /// nil: the entry was removed.
    let record: Record?
}

/// A part of a database's keys, with the lock that orders everything done to them.
///
/// All but `lock` is read and written with `lock` held, which is the proof for `@unchecked Sendable`.
final class Shard: @unchecked Sendable {
    let lock = Lock()
    /// What is applied but not yet committed.
    var overlay: [Key: PendingEntry] = [:]
    /// Goes up with every change of all keys at once: a purge, a failed commit.
    private(set) var wholeChanges: UInt64 = 0
    /// The keys that commands are reading from LevelDB without the lock.
    private var coldReads: [Key: ColdRead] = [:]

    private struct ColdRead {
        var readers = 0
        /// Goes up when the key is written.
        var changes: UInt64 = 0
    }

    /// By which who read LevelDB without the lock can tell that the key did not change meanwhile.
    struct Mark: Equatable {
        let changes: UInt64
        let wholeChanges: UInt64
    }

    /// Puts an entry into the overlay.
    func set(_ key: Key, _ entry: PendingEntry) {
        overlay[key] = entry
        if !coldReads.isEmpty { coldReads[key]?.changes += 1 }
    }

    /// Empties the overlay, and tells whoever is reading that everything changed.
    func clear() {
        overlay.removeAll()
        wholeChanges += 1
    }

    /// Notes that a key is about to be read from LevelDB without the lock. Needs an ``endColdRead(_:)``.
    func beginColdRead(_ key: Key) -> Mark {
        coldReads[key, default: ColdRead()].readers += 1
        return mark(key)
    }

    /// For a key with a cold read begun.
    func mark(_ key: Key) -> Mark {
        Mark(changes: coldReads[key]?.changes ?? 0, wholeChanges: wholeChanges)
    }

    func endColdRead(_ key: Key) {
        guard var read = coldReads[key] else { return }
        read.readers -= 1
        coldReads[key] = read.readers > 0 ? read : nil
    }

    /// How many shards a database has. A power of two.
    static let count = 16
}
