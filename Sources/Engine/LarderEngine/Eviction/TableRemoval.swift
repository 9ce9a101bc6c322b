import LarderLevelDB
import LarderLevelDBFormat
import LarderPlatform

/// Evicts entries on a full file system by removing whole tables from a LevelDB. This only appends a few bytes to
/// LevelDB's manifest.
///
/// Tables of the lowest level are removed first: below them, there is no older version of an entry that could become
/// visible. These tables are chosen at random, regardless of the worth of their entries. Tables of higher levels
/// follow; in level 0, the oldest table comes first.
///
/// Tables also have keys that do not belong to entries. Such keys are written again afterwards if they are still needed
/// (``AuxiliaryKeys``).
///
/// Confined to one thread.
struct TableRemoval {
    let database: Database
    let store: EpochStore
    /// The approximate number of bytes to remove.
    let wantedBytes: Int

    /// The maximum number of keys to collect from the chosen tables. A single table may exceed it.
    private static let entriesMax = 1 << 18
    private static let bytesMax = 64 << 20
    /// The maximum number of attempts, in case LevelDB merges the chosen tables before they can be removed.
    private static let attemptsMax = 4

    /// - Returns: the removed entries. `seenBytes` is the size of the removed table files.
    func run(now: Int64) throws(LarderError) -> EvictionOutcome {
        var outcome = EvictionOutcome()
        guard store.isMade, !store.isFrozen, store.ending == .none else { return outcome }
        try store.indexLock.withLock { () throws(LarderError) in
            for _ in 0..<Self.attemptsMax where outcome.seenBytes == 0 {
                let choice = try choose()
                // Consider leftovers (tables that the manifest does not list) only if LevelDB has failed. Otherwise
                // LevelDB may still be writing them.
                guard !choice.numbers.isEmpty || store.isSuspended && !leftovers(scan()).isEmpty, canReopen(choice)
                else { return }
                if !store.isSuspended {
                    store.suspend(
                        LarderError(
                            .writesSuspended, "the file system is full; space is being freed", operation: "make room",
                            database: database.name))
                }
                database.noteEviction()
                var tableBytes = 0
                try store.whileClosed {
                    // Remove tables in addition to leftovers. Leftovers are the output of a failed merge, so their
                    // space alone is not enough for that merge: it would fail again.
                    guard let manifest = try ManifestScan.scan(directory: store.path) else { return }
                    let room = database.context.larder.disk.room ?? 0
                    outcome.seenBytes = removeLeftovers(manifest)
                    tableBytes = try remove(choice.numbers, manifest)
                    outcome.seenBytes += tableBytes
                    outcome.freedBytes = max(0, (database.context.larder.disk.room ?? 0) - room)
                }
                reopen()
                guard tableBytes > 0 else { continue }
                choice.auxiliary.restore(database, store)
                choice.found.updateMemoryAndNotify(database, victims(choice.found, now), &outcome)
            }
        }
        outcome.count(in: database.context.statistics)
        return outcome
    }

    /// Returns whether there will be enough space to reopen the LevelDB after the removal. If not, nothing is removed,
    /// because readers could not reach the remaining entries.
    private func canReopen(_ choice: Choice) -> Bool {
        guard !store.isClosed, let room = database.context.larder.disk.room else { return true }
        let given = leftovers(scan()).reduce(choice.tableBytes) { $0 + FileSystem.size(store.path + "/" + $1) }
        return room + given >= FileSystem.size(ofLogsIn: store.path) + EpochStore.openingBytes
    }

    private func scan() -> ManifestScan? { (try? ManifestScan.scan(directory: store.path)) ?? nil }

    /// Returns tables that may be removed together and for which `takes` returns true.
    private func removable(
        _ manifest: ManifestScan, start: (Int) -> Int = { _ in 0 },
        where takes: ([(number: UInt64, table: ManifestScan.Table)]) -> Bool
    ) -> [(number: UInt64, table: ManifestScan.Table)] {
        let keepsHints = !database.durableState.indexes.isEmpty
        return manifest.removable(
            from: [KeyKind.record], before: [KeyKind.record + 1], behind: EpochMetadata.formatKey, start: start
        ) { group in
            // A removal must not take hints, or the progress of an index, which is metadata.
            let hasOthers =
                keepsHints
                && group.contains { table in
                    table.table.first.first != KeyKind.record
                        || !table.table.last.lexicographicallyPrecedes([KeyKind.hint])
                }
            return !hasOthers && takes(group)
        }
    }

    private struct Choice {
        var numbers: Set<UInt64> = []
        var tableBytes = 0
        var found = EvictionRange()
        var auxiliary = AuxiliaryKeys()
    }

    /// Chooses adjacent tables at a random place, and collects their entries and other keys.
    private func choose() throws(LarderError) -> Choice {
        var most = min(wantedBytes, Self.bytesMax)
        while true {
            var choice = Choice()
            guard let manifest = scan() else { return choice }
            var bytes = 0
            let chosen = removable(
                manifest, start: { Int.random(in: 0..<$0) },
                where: { group in
                    guard bytes < most else { return false }
                    bytes += group.reduce(0) { $0 + $1.table.byteCount }
                    return true
                })
            (choice.numbers, choice.tableBytes) = (Set(chosen.map(\.number)), bytes)
            let isLeast = choice.numbers.count <= 1
            for range in Self.ranges(chosen.map(\.table)) where isLeast || choice.found.next == nil {
                try choice.found.collect(
                    store, from: range.first, through: range.last, bytesMax: .max / 2,
                    entriesMax: isLeast ? .max / 2 : Self.entriesMax - choice.found.entries.count,
                    database.removalRules.purges)
            }
            if choice.found.next == nil {
                try choice.auxiliary.collect(store, chosen.map(\.table))
                if isLeast || choice.auxiliary.count <= Self.entriesMax { return choice }
            }
            most = min(most, bytes) / 2
        }
    }

    /// Returns the key ranges of the tables in the order of the keys. Ranges that overlap are combined.
    private static func ranges(_ tables: [ManifestScan.Table]) -> [(first: [UInt8], last: [UInt8])] {
        var ranges: [(first: [UInt8], last: [UInt8])] = []
        for table in tables.sorted(by: { $0.first.lexicographicallyPrecedes($1.first) }) {
            if let before = ranges.last?.last, !before.lexicographicallyPrecedes(table.first) {
                if before.lexicographicallyPrecedes(table.last) { ranges[ranges.count - 1].last = Array(table.last) }
            } else {
                ranges.append((Array(table.first), Array(table.last)))
            }
        }
        return ranges
    }

    /// Returns the names of tables that the manifest does not list: the output of a failed merge. LevelDB removes them
    /// when it opens, but it needs free space to open.
    private func leftovers(_ manifest: ManifestScan?) -> [String] {
        guard let manifest, !manifest.hasUnknownEdit, let names = try? FileSystem.list(store.path) else { return [] }
        return names.filter { FileNames.tableNumber($0).map { manifest.tables[$0] == nil } ?? false }
    }

    /// Removes the files of the leftovers. Called while the LevelDB is closed.
    /// - Returns: the number of bytes removed.
    private func removeLeftovers(_ manifest: ManifestScan) -> Int {
        leftovers(manifest).reduce(0) { bytes, name in
            let path = store.path + "/" + name
            let size = FileSystem.size(path)
            return (try? FileSystem.removeFile(path)) != nil ? bytes + size : bytes
        }
    }

    /// Removes tables from the manifest, and then their files. Called while the LevelDB is closed.
    /// - Returns: the number of bytes removed.
    private func remove(_ numbers: Set<UInt64>, _ manifest: ManifestScan) throws -> Int {
        // LevelDB may have merged some of the tables in the meantime.
        let present = removable(manifest) { $0.allSatisfy { numbers.contains($0.number) } }
        guard !present.isEmpty else { return 0 }
        do {
            try manifest.appendRemoval(of: present.map(\.number), in: store.path)
        } catch {
            guard error.isFullDisk else { throw error }
            // Remove LevelDB's LOG files, which are not needed, to free the one or two blocks that the manifest needs.
            for name in ["LOG.old", "LOG"] { try? FileSystem.removeFile(store.path + "/" + name) }
            try manifest.appendRemoval(of: present.map(\.number), in: store.path)
        }
        for (number, _) in present {
            for name in [FileNames.table(number), FileNames.oldTable(number)] {
                try? FileSystem.removeFile(store.path + "/" + name)
            }
        }
        return present.reduce(0) { $0 + $1.table.byteCount }
    }

    private func reopen() {
        do throws(LarderError) {
            try store.recover()
            // If a write to LevelDB had failed, its changes may become visible now. So forget what was read before.
            database.shards.withAllLocked { for shard in database.shards.all { shard.forgetStored() } }
        } catch {
            database.context.report(
                .debug, "database '\(database.name)' cannot be reopened yet: \(error)", database: database.name)
        }
    }

    /// Returns the collected entries that LevelDB no longer has. LevelDB still has an entry if a newer version is in
    /// another table.
    private func victims(_ found: EvictionRange, _ now: Int64) -> [EvictionRange.Victim] {
        var left: Set<ArraySlice<UInt8>> = []
        if !store.isSuspended {
            for entry in found.entries {
                let key = found.storedKey(entry)
                if ((try? store.header(of: Key(stored: Array(key)), nil)) ?? nil) != nil { left.insert(key) }
            }
        }
        let rules = database.removalRules
        return found.entries.indices.compactMap { index in
            let entry = found.entries[index]
            let key = found.storedKey(entry)
            guard !left.contains(key) else { return nil }
            let isGone = entry.header.map { rules.isGone($0, now: now) } ?? false
            return EvictionRange.Victim(
                index: index, hash: key.dropFirst().withUnsafeBytes { Key.hash($0) }, isGone: isGone)
        }
    }
}
