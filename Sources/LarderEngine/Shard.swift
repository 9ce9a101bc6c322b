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
    /// Committed entries that are in memory too. Where the overlay has the key, that one counts, and this one may be
    /// older than what LevelDB has.
    var tier = MemoryTier()
    private let budget: MemoryBudget
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

    init(budget: MemoryBudget) { self.budget = budget }

    deinit { budget.changed(by: -tier.byteCount) }

    /// Puts an entry into the overlay. The memory tier follows when it is settled.
    func set(_ key: Key, _ entry: PendingEntry) {
        overlay[key] = entry
        if !coldReads.isEmpty { coldReads[key]?.changes += 1 }
    }

    /// Empties the overlay, and tells whoever is reading that everything changed.
    func clear() {
        overlay.removeAll()
        forgetStored()
    }

    /// Drops what is known of LevelDB's content, and tells whoever is reading that it may have changed.
    func forgetStored() {
        changeTier { $0.removeAll() }
        wholeChanges += 1
    }

    // MARK: The memory tier

    /// Takes an entry out of the overlay once its unit is in LevelDB, and keeps it in memory. A key that was there
    /// keeps its place: what is written over and over is as hot as it was.
    func settle(_ key: Key, sequence: UInt64) {
        guard let index = overlay.index(forKey: key) else { return }
        let entry = overlay.values[index]
        guard entry.sequence == sequence else { return }
        overlay.remove(at: index)
        if let record = entry.record, budget.isOn, budget.admits(record) {
            changeTier { $0.insert(key, record) }
            budget.makeRoom(self)
        } else if tier.count > 0 {
            changeTier { $0.remove(key) }
        }
    }

    /// Keeps a committed record in memory, if the tier is on and there is no newer one.
    func keep(_ key: Key, _ record: Record) {
        guard budget.isOn, budget.admits(record), overlay[key] == nil else { return }
        changeTier { $0.insert(key, record) }
        budget.makeRoom(self)
    }

    /// Keeps what was read from LevelDB without the lock, unless the key changed meanwhile; ends the cold read.
    func endColdRead(_ key: Key, _ mark: Mark, keeping record: Record?) {
        if let record, self.mark(key) == mark { keep(key, record) }
        endColdRead(key)
    }

    /// Keeps an object beside a committed record, unless it would take more than a record may.
    func attach(_ object: AnyObject, to key: Key, version: UInt64, bytes: Int) {
        guard version != 0, bytes >= 0, budget.admits(bytes: bytes), overlay[key] == nil else { return }
        var isAttached = false
        changeTier { isAttached = $0.attach(object, to: key, version: version, bytes: bytes) }
        if isAttached { budget.makeRoom(self) }
    }

    /// Drops an entry that was found to be expired.
    func dropFromTier(_ key: Key) { changeTier { $0.remove(key) } }

    /// Whether records are kept in memory at all.
    var keepsRecords: Bool { budget.isOn }

    private func changeTier(_ body: (inout MemoryTier) -> Void) {
        let before = tier.byteCount
        body(&tier)
        budget.changed(by: tier.byteCount - before)
    }

    // MARK: Cold reads

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

    /// How many shards a database has. A power of two, 32 at most: sets of them are the bits of a UInt32.
    static let count = 16

    /// The shard of a key, from 0 to ``count`` - 1.
    static func index(_ key: Key) -> Int { key.hash & (count - 1) }
}
