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
    private static let hitsMax: UInt32 = 3

    /// The size of the clean entries, which may be evicted, in bytes.
    var cleanByteCount: Int {
        small.entryBytes + main.entryBytes + (small.count + main.count) * EntryPointer.overheadBytes
    }

    /// Counts a hit.
    func touch(_ entry: EntryPointer) {
        let hits = entry.hits
        if hits < Self.hitsMax { entry.hits = hits + 1 }
    }

    /// Makes a clean entry the next entry that its queue evicts.
    func demote(_ entry: EntryPointer) {
        entry.hits = 0
        switch entry.place {
        case .small: moveToOldest(entry, &small)
        case .main: moveToOldest(entry, &main)
        case .active, .written, .nowhere, .free: break
        }
    }

    /// Exchanges the places of an entry and the oldest entry.
    private func moveToOldest(_ entry: EntryPointer, _ queue: inout EntryQueue<EntryReference>) {
        let reference = queue[entry.position].pointee
        fill(entry.position, &queue)
        queue[queue.first].pointee = reference
        entry.position = queue.first
    }

    /// Moves the oldest entry to a position, whose entry leaves it.
    private func fill(_ position: UInt32, _ queue: inout EntryQueue<EntryReference>) {
        guard position != queue.first else { return }
        let oldest = queue[queue.first].pointee
        queue[position].pointee = oldest
        memory.entry(oldest).position = position
    }

    /// Removes a clean entry from its queue. The oldest entry takes its place, so that the queue has no gaps: it is
    /// evicted later than it would have been.
    /// - Returns: the entry's reference.
    func takeOut(_ entry: EntryPointer) -> EntryReference {
        entry.place == .main ? takeOut(entry, &main) : takeOut(entry, &small)
    }

    private func takeOut(_ entry: EntryPointer, _ queue: inout EntryQueue<EntryReference>) -> EntryReference {
        let reference = queue[entry.position].pointee
        fill(entry.position, &queue)
        queue.removeFirst(of: entry)
        return reference
    }

    /// Adds a clean entry, which is in no queue, to one of the queues.
    /// - Parameter hash: the hash of the key; nil to compute it.
    func admit(_ reference: EntryReference, _ entry: EntryPointer, hash: Int?, wasMain: Bool) {
        if wasMain || (!ghosts.isEmpty && ghosts.remove(hash ?? self.hash(of: entry), most: ghostCount)) {
            pushMain(reference, entry)
        } else {
            entry.position = small.append(reference, of: entry)
            entry.place = .small
        }
        entry.isIndexed = false
    }

    private func pushMain(_ reference: EntryReference, _ entry: EntryPointer) {
        entry.position = main.append(reference, of: entry)
        entry.place = .main
    }

    private var ghostCount: Int { max(64, main.count) }

    /// Evicts one clean entry. May move others.
    /// - Returns: false if there is no clean entry.
    func evict() -> Bool {
        while small.count + main.count > 0 {
            let isEvicted =
                if main.isEmpty || small.entryBytes * Self.smallShare > small.entryBytes + main.entryBytes {
                    evictFromSmall()
                } else {
                    evictFromMain()
                }
            guard isEvicted else { continue }
            compact()
            return true
        }
        return false
    }

    /// - Returns: whether an entry was evicted. If not, the oldest entry had hits and was moved to the main queue.
    private func evictFromSmall() -> Bool {
        if small.isEmpty { return evictFromMain() }
        let reference = small[small.first].pointee
        let entry = memory.entry(reference)
        small.removeFirst(of: entry)
        if entry.hits > 0 {
            entry.hits = 0
            pushMain(reference, entry)
            return false
        }
        ghosts.add(hash(of: entry), most: ghostCount)
        discard(reference, entry)
        return true
    }

    /// - Returns: whether an entry was evicted. If not, the oldest entry had hits and was moved to the newest end.
    private func evictFromMain() -> Bool {
        if main.isEmpty { return false }
        let reference = main[main.first].pointee
        let entry = memory.entry(reference)
        main.removeFirst(of: entry)
        if entry.hits > 0 {
            entry.hits -= 1
            pushMain(reference, entry)
            return false
        }
        // The entry's reads from memory were not counted. Count one disk read for all of them, so that the eviction
        // from the disk considers them. The sketch is empty while disk reads are not counted.
        if !diskReads.isEmpty { diskReads.add(hash(of: entry)) }
        discard(reference, entry)
        return true
    }

    /// Estimates how often an entry is read, from its queue and its hits. Entries in the main queue were read
    /// repeatedly, and these reads were not counted as disk reads.
    func hotness(_ entry: EntryPointer) -> Int {
        let hits = Int(entry.hits)
        return entry.place == .main ? 4 * (1 + hits) : hits
    }
}
