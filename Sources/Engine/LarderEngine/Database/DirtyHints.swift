import LarderPlatform
import Synchronization

/// The hints of the entries that LevelDB does not have yet, in memory. Filled lazily from the keys that writers note
/// (``ChangedKeys``): by the next query, in the background when there are many, and by writers when there are too many.
/// So a query never has many to find.
///
/// At the end of ``fill(_:for:pinnedBytesMin:indexes:)``, the hints include those of every entry that was dirty when it
/// began, and is still dirty. Others do no harm: readers look up each entry. So a write never looks for the hints of
/// the previous value, and a checkpoint that has ended only drops the runs from before it began.
///
/// Thread-safe. Lock order: `filling`, shard locks, `runs`; `merging`, `runs`.
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

    private struct Filling {
        /// The shard whose noted keys are taken next.
        var nextShard = 0
        /// The number of hints after the last ``refresh(_:pinnedBytesMin:indexes:)``.
        var refreshedCount = 0
    }

    let changed: ChangedKeyCount
    private let filling = Locked(Filling())
    /// Whether a thread finds the hints of all dirty entries anew. Writers, which may be event loops, do not wait for it.
    private let isRefreshing = Atomic(false)
    private let runs = Locked(Runs())
    /// Held while runs are merged.
    private let merging = Lock()

    /// The number of similarly long runs that are merged.
    private static let mergedCount = 4
    /// The number of runs of an index above which the newest are merged, even if they are from different checkpoints.
    private static let partsMax = 24
    /// The number of keys whose hints an event loop finds.
    private static let quickCount = 64
    /// The number of keys that the background work, or a writer, takes at once.
    static let sliceCount = 1024
    /// The number of hints above which stale ones are looked for.
    private static let refreshMin = 1 << 16
    /// The number of dirty entries up to which a count looks for stale hints.
    private static let countedMax = 1 << 14

    init(_ wake: @escaping @Sendable () -> Void) { changed = ChangedKeyCount(wake) }

    /// Whether writers should find hints, because there are too many to be found.
    var needsWriters: Bool { changed.areTooMany && !isRefreshing.load(ordering: .relaxed) }

    var hintCount: Int { runs.withLock { $0.count } }

    // MARK: Filling

    /// Who needs the hints. A count needs no stale ones.
    enum Caller { case query, background, writer, count }

    /// Adds the hints of the entries that were written since the last call: of all of them for a query or a count,
    /// otherwise of ``sliceCount``.
    /// - Parameter indexes: returns the present indexes.
    /// - Returns: the runs of each index.
    @discardableResult
    func fill(
        _ shards: borrowing DatabaseShards, for caller: Caller, pinnedBytesMin: Int, indexes: () -> [OpenIndex]
    ) -> [UInt64: [HintRun]] {
        // Wait for another thread that is filling, even if no keys are left: their hints are not added yet.
        let found = filling.withLock { filling in
            if caller != .writer || changed.areTooMany {
                let most = caller == .query || caller == .count ? .max : Self.sliceCount
                add(shards, most, &filling, pinnedBytesMin: pinnedBytesMin, indexes: indexes)
            }
            if caller != .writer {
                refreshIfDue(shards, &filling, for: caller, pinnedBytesMin: pinnedBytesMin, indexes: indexes)
            }
            return runs.withLock { $0.parts.mapValues { $0.map(\.run) } }
        }
        merge(all: caller != .query)
        return found
    }

    /// Like ``fill(_:for:pinnedBytesMin:indexes:)`` for a query, for event loops.
    /// - Returns: nil if that would take long.
    func fillQuickly(
        _ shards: borrowing DatabaseShards, pinnedBytesMin: Int, indexes: () -> [OpenIndex]
    ) -> [UInt64: [HintRun]]? {
        guard changed.value <= Self.quickCount else { return nil }
        let found = filling.withLockUnlessBusy { filling -> [UInt64: [HintRun]]? in
            add(shards, .max, &filling, pinnedBytesMin: pinnedBytesMin, indexes: indexes)
            return runs.withLock { runs in
                let isLong = runs.parts.values.contains { $0.count > Self.partsMax }
                return isLong ? nil : runs.parts.mapValues { $0.map(\.run) }
            }
        }
        return found ?? nil
    }

    /// Called with `filling` held.
    private func add(
        _ shards: borrowing DatabaseShards, _ most: Int, _ filling: inout Filling, pinnedBytesMin: Int,
        indexes: () -> [OpenIndex]
    ) {
        if changed.isZero { return }
        var extraction = Extraction(pinnedBytesMin: pinnedBytesMin)
        for _ in 0..<Shard.count where extraction.keyCount < most {
            let shard = shards[filling.nextShard]
            filling.nextShard = (filling.nextShard + 1) % Shard.count
            let keys = shard.lock.withLock {
                shard.changedKeys?.take { keys in Self.addAll(shard, &keys) } ?? []
            }
            // An index that is created after this lets the keys of all dirty entries be noted again.
            if !keys.isEmpty { extraction.add(keys, shard, indexes()) }
        }
        insert(extraction)
    }

    private func refreshIfDue(
        _ shards: borrowing DatabaseShards, _ filling: inout Filling, for caller: Caller, pinnedBytesMin: Int,
        indexes: () -> [OpenIndex]
    ) {
        let (count, isCount) = (hintCount, caller == .count)
        guard count > (isCount ? 0 : max(Self.refreshMin, 4 * filling.refreshedCount)) else { return }
        let dirtyCount = shards.sum { $0.dirtyCount }
        let most = isCount ? Self.countedMax : caller == .query ? Self.sliceCount : .max
        // Hints of entries that were written once are not stale.
        guard dirtyCount <= most, isCount || count > 2 * dirtyCount * indexes().count else { return }
        isRefreshing.store(true, ordering: .relaxed)
        defer { isRefreshing.store(false, ordering: .relaxed) }
        refresh(shards, pinnedBytesMin: pinnedBytesMin, indexes: indexes)
        filling.refreshedCount = hintCount
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
    }

    private static func addAll(_ shard: Shard, _ keys: inout [UInt8]) {
        shard.table.forEachDirty { if $0.hasRecord { ChangedKeys.append($0.key, to: &keys) } }
    }

    private func insert(_ extraction: consuming Extraction) {
        for (number, maker) in extraction.makers {
            let run = maker.sortedRun()
            runs.withLock { $0.parts[number, default: []].append(Part(run: run, stamp: $0.stamp)) }
        }
    }

    /// Merges runs of an index if several are from the same time and similarly long, or if there are many.
    /// - Parameter all: whether to do more than is needed now. Does nothing while another thread merges.
    private func merge(all: Bool) {
        guard merging.tryLock() else { return }
        defer { merging.unlock() }
        for number in runs.withLock({ Array($0.parts.keys) }) { while merge(number, all: all) {} }
    }

    /// - Returns: whether runs were to be merged.
    private func merge(_ number: UInt64, all: Bool) -> Bool {
        let chosen = runs.withLock { runs -> [Part] in
            guard let parts = runs.parts[number] else { return [] }
            if parts.count > Self.partsMax { return parts.suffix(Self.partsMax / 2) }
            let last = parts.suffix(Self.mergedCount)
            guard all, last.count == Self.mergedCount, let first = last.first, let newest = last.last else { return [] }
            let areAlike = first.stamp == newest.stamp && first.run.count < 2 * newest.run.count
            return areAlike ? Array(last) : []
        }
        guard let stamp = chosen.map(\.stamp).max() else { return false }
        let merged = Part(run: .merged(chosen.map(\.run)), stamp: stamp)
        runs.withLock { runs in
            // A checkpoint may have dropped some of them.
            guard let parts = runs.parts[number], let place = parts.firstIndex(where: { $0.run === chosen[0].run }),
                place + chosen.count <= parts.count, zip(parts[place...], chosen).allSatisfy({ $0.run === $1.run })
            else { return }
            runs.parts[number]?.replaceSubrange(place..<(place + chosen.count), with: [merged])
        }
        return true
    }

    /// Finds the hints of entries.
    private struct Extraction {
        let pinnedBytesMin: Int
        var keyCount = 0
        var makers: [UInt64: HintRun.Maker] = [:]

        /// Adds the hints of entries of a shard.
        /// - Parameter keys: a list of ``ChangedKeys``.
        mutating func add(_ keys: [UInt8], _ shard: Shard, _ indexes: [OpenIndex]) {
            var maker = HintMaker(indexes)
            if maker.isEmpty { return }
            var record: [UInt8] = []
            ChangedKeys.forEach(keys) { key in
                keyCount += 1
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
    /// - Returns: what to pass to ``drop(_:_:)``.
    func freeze() -> Int {
        runs.withLock { runs in
            defer { runs.stamp += 1 }
            return runs.stamp
        }
    }

    /// Drops the hints of the entries that a checkpoint has written to LevelDB. Called when these entries are clean.
    /// The entries that it has left dirty must have been noted again. Waits for a thread that is filling: it may have
    /// looked for noted keys before these were noted.
    func drop(_ stamp: Int, _ shards: borrowing DatabaseShards) {
        filling.withLock { _ in
            // Hints that were found after the stamp are of no use either if no entry is dirty.
            let dirtyCount = shards.sum { $0.dirtyCount }
            runs.withLock { runs in
                for number in runs.parts.keys {
                    runs.parts[number]?.removeAll { $0.stamp <= stamp || dirtyCount == 0 }
                }
            }
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
