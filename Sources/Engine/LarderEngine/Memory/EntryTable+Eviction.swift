/// The eviction of clean entries: S3-FIFO (Yang, Zhang, Qiu, Yue and Vinayak, "FIFO Queues are All You Need for Cache
/// Eviction", SOSP 2023).
///
/// New entries enter a small queue. Entries that are read again while they are in it move to the main queue. The others
/// are evicted, but their hashes are remembered for a while: if such an entry is stored or read again, it enters the
/// main queue at once. A scan of many entries passes through the small queue, and does not evict entries of the main
/// queue. A hit only increments a counter; no entry is moved.
extension EntryTable {
    /// The small queue's share of the clean bytes: one tenth.
    private static let smallShare = 10
    /// Hits are counted up to this number.
    private static let frequencyMax: UInt8 = 3

    /// The bytes of the entries that may be evicted.
    var cleanByteCount: Int { small.byteCount + main.byteCount }

    /// Counts a hit.
    func touch(_ entry: EntryPointer) {
        if entry.head.pointee.frequency < Self.frequencyMax { entry.head.pointee.frequency += 1 }
    }

    /// Makes a clean entry the next entry that its queue evicts.
    func demote(_ entry: EntryPointer) {
        entry.head.pointee.frequency = 0
        switch entry.head.pointee.place {
        case .small: small.moveToOldest(entry)
        case .main: main.moveToOldest(entry)
        case .active, .written, .nowhere: break
        }
    }

    /// Adds an entry that is in no list to a queue of the eviction.
    func admit(_ entry: EntryPointer) {
        if entry.head.pointee.wasMain || ghosts.remove(entry.head.pointee.hash, most: ghostCount) {
            main.push(entry, .main)
        } else {
            small.push(entry, .small)
        }
    }

    private var ghostCount: Int { max(64, main.count) }

    /// Evicts one clean entry.
    /// - Returns: false if there is no clean entry.
    func evict() -> Bool {
        while small.count + main.count > 0 {
            if main.count == 0 || small.byteCount * Self.smallShare > cleanByteCount {
                if evictFromSmall() { return true }
            } else if evictFromMain() {
                return true
            }
        }
        return false
    }

    /// - Returns: whether an entry was evicted; otherwise the oldest entry moved to the main queue.
    private func evictFromSmall() -> Bool {
        guard let entry = small.oldest else { return evictFromMain() }
        small.unlink(entry)
        if entry.head.pointee.frequency > 0 {
            entry.head.pointee.frequency = 0
            main.push(entry, .main)
            return false
        }
        ghosts.add(entry.head.pointee.hash, most: ghostCount)
        discard(entry)
        return true
    }

    /// - Returns: whether an entry was evicted; otherwise the oldest entry, which had hits, moved to the newest end.
    private func evictFromMain() -> Bool {
        guard let entry = main.oldest else { return false }
        main.unlink(entry)
        if entry.head.pointee.frequency > 0 {
            entry.head.pointee.frequency -= 1
            main.push(entry, .main)
            return false
        }
        // Count the eviction as one disk read: reads from memory were not counted, and the eviction from the disk
        // should still consider them. The sketch is empty while no disk reads are counted.
        if !diskReads.isEmpty { diskReads.add(entry.head.pointee.hash) }
        discard(entry)
        return true
    }

    /// An estimate of how often an entry is read, according to its place in memory. Entries in the main queue are read
    /// repeatedly, and these reads are not counted as disk reads.
    func hotness(_ entry: EntryPointer) -> Int {
        let frequency = Int(entry.head.pointee.frequency)
        return entry.head.pointee.place == .main ? 4 * (1 + frequency) : frequency
    }
}
