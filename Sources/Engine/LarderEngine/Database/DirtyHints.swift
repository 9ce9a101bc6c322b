import LarderPlatform

/// The hints of the entries that LevelDB does not have yet, in memory. Filled lazily from the keys that writers note
/// (``ChangedKeys``): by the next query, and in the background when there are many.
///
/// At the end of ``fill(_:pinnedBytesMin:indexes:)``, the hints include those of every entry that was dirty when it
/// began, and is still dirty. Others do no harm: readers look up each entry. So a write never looks for the hints of
/// the previous value, and a checkpoint that has ended only drops the runs from before it began.
///
/// Thread-safe. Lock order: `filling`, shard locks, `runs`.
final class DirtyHints: Sendable {
    private struct Part {
        let run: HintRun
        /// The number of checkpoints that had begun when the run was made.
        var stamp: Int
    }

    private struct Runs {
        var parts: [UInt64: [Part]] = [:]
        var stamp = 0
        var count: Int { parts.values.reduce(0) { $0 + $1.reduce(0) { $0 + $1.run.count } } }
    }

    let changed: ChangedKeyCount
    private let filling = Lock()
    private let runs = Locked(Runs())
    /// The number of hints after the last ``refresh(_:pinnedBytesMin:indexes:)``. Guarded by `filling`.
    private let refreshedCount = Locked(0)

    /// The number of runs of an index above which the oldest are merged, even if they are from different checkpoints.
    private static let partsMax = 24
    /// The number of hints above which stale ones are looked for.
    private static let refreshMin = 1 << 16

    init(_ wake: @escaping @Sendable () -> Void) { changed = ChangedKeyCount(wake) }

    var hintCount: Int { runs.withLock { $0.count } }

    // MARK: Filling

    /// Adds the hints of the entries that were written since the last call.
    /// - Parameter indexes: returns the present indexes.
    /// - Returns: the runs of each index.
    func fill(
        _ shards: borrowing DatabaseShards, pinnedBytesMin: Int, indexes: () -> [OpenIndex]
    ) -> [UInt64: [HintRun]] {
        // Wait for another thread that is filling, even if no keys are left: their hints are not added yet.
        filling.lock()
        defer { filling.unlock() }
        add(shards, pinnedBytesMin: pinnedBytesMin, indexes: indexes)
        return runs.withLock { $0.parts.mapValues { $0.map(\.run) } }
    }

    /// Called with `filling` held.
    private func add(_ shards: borrowing DatabaseShards, pinnedBytesMin: Int, indexes: () -> [OpenIndex]) {
        if changed.isZero { return }
        var extraction = Extraction(pinnedBytesMin: pinnedBytesMin)
        for shard in shards.all {
            let keys = shard.lock.withLock {
                shard.changedKeys?.take { keys in Self.addAll(shard, &keys) } ?? []
            }
            // An index that is created after this lets the keys of all dirty entries be noted again.
            if !keys.isEmpty { extraction.add(keys, shard, indexes()) }
        }
        insert(extraction)
        let count = hintCount
        if count > max(Self.refreshMin, 4 * refreshedCount.withLock { $0 }) {
            // Hints of entries that were written once are not stale.
            let dirtyCount = shards.all.reduce(0) { sum, shard in sum + shard.lock.withLock { shard.table.dirtyCount } }
            if count > 2 * dirtyCount * indexes().count {
                refresh(shards, pinnedBytesMin: pinnedBytesMin, indexes: indexes)
            }
        }
    }

    /// Drops stale hints, which accumulate if the same entries are written again and again without a checkpoint: finds
    /// the hints of all dirty entries anew. Called with `filling` held.
    private func refresh(_ shards: borrowing DatabaseShards, pinnedBytesMin: Int, indexes: () -> [OpenIndex]) {
        let old = runs.withLock { Set($0.parts.values.joined().map { ObjectIdentifier($0.run) }) }
        var extraction = Extraction(pinnedBytesMin: pinnedBytesMin)
        for shard in shards.all {
            let keys = shard.lock.withLock {
                var keys: [UInt8] = []
                Self.addAll(shard, &keys)
                return keys
            }
            extraction.add(keys, shard, indexes())
        }
        insert(extraction)
        // Entries that were written meanwhile are noted, and will be added.
        runs.withLock { runs in
            for number in runs.parts.keys { runs.parts[number]?.removeAll { old.contains(ObjectIdentifier($0.run)) } }
        }
        refreshedCount.withLock { $0 = hintCount }
    }

    private static func addAll(_ shard: Shard, _ keys: inout [UInt8]) {
        shard.table.forEachDirty { if $0.hasRecord { ChangedKeys.append($0.key, to: &keys) } }
    }

    private func insert(_ extraction: consuming Extraction) {
        for (number, maker) in extraction.makers {
            let run = maker.sortedRun()
            runs.withLock { $0.parts[number, default: []].append(Part(run: run, stamp: $0.stamp)) }
            while merge(number) {}
        }
    }

    /// Merges two runs of an index if there are many, or if they are from the same time and similarly long.
    /// - Returns: whether two runs were to be merged.
    private func merge(_ number: UInt64) -> Bool {
        let pair = runs.withLock { runs -> (Part, Part)? in
            guard let parts = runs.parts[number], parts.count > 1 else { return nil }
            let (left, right) = (parts[parts.count - 2], parts[parts.count - 1])
            if left.stamp == right.stamp, left.run.count < 2 * right.run.count { return (left, right) }
            return parts.count > Self.partsMax ? (parts[0], parts[1]) : nil
        }
        guard let (left, right) = pair else { return false }
        let merged = Part(run: .merged(left.run, right.run), stamp: max(left.stamp, right.stamp))
        runs.withLock { runs in
            // A checkpoint may have dropped one of them.
            guard let place = runs.parts[number]?.firstIndex(where: { $0.run === left.run }),
                let next = runs.parts[number]?.dropFirst(place + 1).first, next.run === right.run
            else { return }
            runs.parts[number]?.replaceSubrange(place...(place + 1), with: [merged])
        }
        return true
    }

    /// Finds the hints of entries.
    private struct Extraction {
        let pinnedBytesMin: Int
        var makers: [UInt64: HintRun.Maker] = [:]

        /// Adds the hints of entries of a shard.
        /// - Parameter keys: a list of ``ChangedKeys``.
        mutating func add(_ keys: [UInt8], _ shard: Shard, _ indexes: [OpenIndex]) {
            var maker = HintMaker(indexes)
            if maker.isEmpty { return }
            var record: [UInt8] = []
            ChangedKeys.forEach(keys) { key in
                record.removeAll(keepingCapacity: true)
                let hash = Key.hash(key)
                let pinned = shard.lock.withLock { () -> (EntryPointer, UnsafeRawBufferPointer)? in
                    // LevelDB has the hints of a clean entry.
                    guard let entry = shard.table.find(key, hash: hash), entry.isDirty, entry.hasRecord else {
                        return nil
                    }
                    if entry.recordCount >= pinnedBytesMin, let record = entry.pinnedRecord, entry.pin() {
                        return (entry, record)
                    }
                    entry.appendStored(to: &record)
                    return nil
                }
                if let (entry, long) = pinned {
                    // Safe without the lock: the entry is pinned.
                    add(key, long, &maker)
                    shard.lock.withLock { entry.unpin() }
                } else if !record.isEmpty {
                    record.withUnsafeBytes { add(key, $0, &maker) }
                }
            }
        }

        private mutating func add(
            _ key: UnsafeRawBufferPointer, _ record: UnsafeRawBufferPointer, _ maker: inout HintMaker
        ) {
            maker.forEachHint(key, record) { number, hint, termCount in
                hint.withUnsafeBytes {
                    makers[number, default: HintRun.Maker()].add(
                        UnsafeRawBufferPointer(rebasing: $0[Hint.headBytes...]), termCount: termCount)
                }
            }
        }
    }

    // MARK: Checkpoints

    /// Called when a checkpoint has frozen the dirty entries, with all shard locks held.
    /// - Returns: what to pass to ``drop(_:)``.
    func freeze() -> Int {
        runs.withLock { runs in
            defer { runs.stamp += 1 }
            return runs.stamp
        }
    }

    /// Drops the hints of the entries that a checkpoint has written to LevelDB. Called when these entries are clean.
    /// The entries that it has left dirty must have been noted again. Waits for a thread that is filling: it may have
    /// looked for noted keys before these were noted.
    func drop(_ stamp: Int) {
        filling.lock()
        defer { filling.unlock() }
        runs.withLock { runs in
            for number in runs.parts.keys { runs.parts[number]?.removeAll { $0.stamp <= stamp } }
        }
    }

    /// Drops all hints. Called with all shard locks held, when the entries have been dropped.
    func removeAll() { runs.withLock { $0.parts = [:] } }
}

/// Hints that readers have found stale, until they are removed. Thread-safe.
final class StaleHints: Sendable {
    /// The keys of the hints in LevelDB, with the lengths of their terms.
    private let hints = Locked<[[UInt8]: Int]>([:])
    /// The number of hints at which they are removed.
    private static let many = 256
    private static let countMax = 4096

    /// - Returns: whether they should be removed now.
    func add(_ key: [UInt8], termCount: Int) -> Bool {
        hints.withLock { hints in
            guard hints.count < Self.countMax, hints.updateValue(termCount, forKey: key) == nil else { return false }
            return hints.count == Self.many
        }
    }

    func take() -> [[UInt8]: Int] {
        hints.withLock { hints in
            defer { hints = [:] }
            return hints
        }
    }
}
