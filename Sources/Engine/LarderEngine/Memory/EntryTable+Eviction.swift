/// The eviction of clean entries: S3-FIFO (Yang, Zhang, Qiu, Yue and Vinayak, "FIFO Queues are All You Need for Cache
/// Eviction", SOSP 2023).
///
/// New entries enter a small queue. Those that are read again while they are in it move to the main queue; the others
/// are evicted, and only their hashes are remembered for a while, so that one that comes back enters the main queue at
/// once. A scan passes through the small queue and evicts nothing else. A hit changes a counter and moves nothing.
extension EntryTable {
    /// The small queue may hold one in this many of the clean bytes.
    private static let smallShare = 10
    /// Hits are counted up to this number.
    private static let frequencyMax: UInt8 = 3

    /// Bytes of the entries that may be evicted.
    var cleanByteCount: Int { small.byteCount + main.byteCount }

    /// Counts a hit.
    func touch(_ entry: EntryPointer) {
        if entry.head.pointee.frequency < Self.frequencyMax { entry.head.pointee.frequency += 1 }
    }

    /// Makes a clean entry the next of its queue to be evicted.
    func demote(_ entry: EntryPointer) {
        entry.head.pointee.frequency = 0
        switch entry.head.pointee.place {
        case .small: small.moveToOldest(entry)
        case .main: main.moveToOldest(entry)
        case .active, .written, .nowhere: break
        }
    }

    /// Puts an entry that is in no list into a queue of the eviction.
    func admit(_ entry: EntryPointer) {
        if entry.head.pointee.wasMain || ghosts.remove(entry.head.pointee.hash, most: ghostCount) {
            main.push(entry, .main)
        } else {
            small.push(entry, .small)
        }
    }

    private var ghostCount: Int { max(64, main.count) }

    /// Evicts one clean entry.
    /// - Returns: false if there is none.
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

    /// - Returns: whether an entry was evicted; otherwise the oldest moved to the main queue.
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

    /// - Returns: whether an entry was evicted; otherwise the oldest, which had hits, goes round again.
    private func evictFromMain() -> Bool {
        guard let entry = main.oldest else { return false }
        main.unlink(entry)
        if entry.head.pointee.frequency > 0 {
            entry.head.pointee.frequency -= 1
            main.push(entry, .main)
            return false
        }
        // The next read of it counts as a disk read; reads from memory would be forgotten.
        if !diskReads.isEmpty { diskReads.add(entry.head.pointee.hash) }
        discard(entry)
        return true
    }

    /// The popularity of an entry in reads, according to its place in memory. Entries in the main queue are read
    /// repeatedly, and none of these reads is a disk read.
    func hotness(_ entry: EntryPointer) -> Int {
        let frequency = Int(entry.head.pointee.frequency)
        return entry.head.pointee.place == .main ? 4 * (1 + frequency) : frequency
    }
}
