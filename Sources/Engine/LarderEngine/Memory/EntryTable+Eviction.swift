/// The eviction of clean entries: S3-FIFO (Yang, Zhang, Qiu, Yue and Vinayak, "FIFO Queues are All You Need for Cache
/// Eviction", SOSP 2023).
///
/// New entries enter a small queue. An entry that is read while it is in this queue moves to the main queue. The others
/// are evicted, but their hashes are remembered for a while: if such an entry is stored or read again, it enters the
/// main queue directly. So a scan of many entries passes only through the small queue, and does not evict entries of
/// the main queue. A hit only increments a counter, and moves no entry.
extension EntryTable {
    /// The divisor for the small queue's share of the clean bytes: one tenth.
    private static let smallShare = 10
    /// The highest count of hits.
    private static let frequencyMax: UInt8 = 3

    /// The size of the clean entries, which may be evicted, in bytes.
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

    /// Adds a clean entry, which is in no list, to one of the queues.
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

    /// - Returns: whether an entry was evicted. If not, the oldest entry had hits and was moved to the main queue.
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

    /// - Returns: whether an entry was evicted. If not, the oldest entry had hits and was moved to the newest end.
    private func evictFromMain() -> Bool {
        guard let entry = main.oldest else { return false }
        main.unlink(entry)
        if entry.head.pointee.frequency > 0 {
            entry.head.pointee.frequency -= 1
            main.push(entry, .main)
            return false
        }
        // The entry's reads from memory were not counted. Count one disk read for all of them, so that the eviction
        // from the disk considers them. The sketch is empty while disk reads are not counted.
        if !diskReads.isEmpty { diskReads.add(entry.head.pointee.hash) }
        discard(entry)
        return true
    }

    /// Estimates how often an entry is read, from its queue and its hits. Entries in the main queue were read
    /// repeatedly, and these reads were not counted as disk reads.
    func hotness(_ entry: EntryPointer) -> Int {
        let frequency = Int(entry.head.pointee.frequency)
        return entry.head.pointee.place == .main ? 4 * (1 + frequency) : frequency
    }
}
