import LevelDB
import Platform

/// Evicts entries where nothing can be written: takes whole tables out of a LevelDB, which needs some bytes at the end of
/// its manifest. For a file system that is full.
///
/// Tables of the lowest level go, because what they have is hidden by nothing below: no former value comes back. They
/// are chosen at random, whatever their entries are worth.
///
/// Confined to one thread.
struct TableRemoval {
    let database: Database
    let store: EpochStore
    /// About how many bytes are to go.
    let wantedBytes: Int

    /// How many keys are remembered at most, but for those of one table.
    private static let entriesMax = 1 << 18
    private static let bytesMax = 64 << 20
    /// How often tables are chosen that LevelDB has merged before they could be taken.
    private static let attemptsMax = 4

    /// - Returns: what has gone; `seenBytes` is what the tables had on the disk.
    func run(now: Int64) throws(LarderError) -> EvictionOutcome {
        var outcome = EvictionOutcome()
        guard store.isMade, !store.isFrozen, store.ending == .none else { return outcome }
        try store.indexLock.withLock { () throws(LarderError) in
            for _ in 0..<Self.attemptsMax where outcome.seenBytes == 0 {
                let (numbers, found) = try choose()
                // Without a failure of LevelDB's they are what it is about to write.
                guard !numbers.isEmpty || store.isSuspended && !leftovers(scan()).isEmpty else { return }
                if !store.isSuspended {
                    store.suspend(
                        LarderError(
                            .writesSuspended, "the file system is full; room is being made", operation: "make room",
                            database: database.name))
                }
                var tableBytes = 0
                try store.whileClosed {
                    // Tables go as well: with the leftovers' room alone, the same merge would fail again.
                    guard let manifest = try ManifestScan.scan(directory: store.path) else { return }
                    outcome.seenBytes = removeLeftovers(manifest)
                    tableBytes = try remove(numbers, manifest)
                    outcome.seenBytes += tableBytes
                }
                reopen()
                if tableBytes > 0 { found.settle(database, victims(found, now), &outcome) }
            }
        }
        outcome.count(in: database.context.statistics)
        return outcome
    }

    private func scan() -> ManifestScan? { (try? ManifestScan.scan(directory: store.path)) ?? nil }

    private func tables(_ manifest: ManifestScan) -> [(number: UInt64, table: ManifestScan.Table)] {
        manifest.lowestTables(from: [KeyKind.record], before: [KeyKind.record + 1])
    }

    /// Neighbours from a place at random, and their entries.
    private func choose() throws(LarderError) -> ([UInt64], EvictionRange) {
        var found = EvictionRange()
        guard let manifest = scan() else { return ([], found) }
        let tables = tables(manifest)
        guard !tables.isEmpty else { return ([], found) }
        let first = Int.random(in: 0..<tables.count)
        var numbers: [UInt64] = []
        var bytes = 0
        for place in 0..<tables.count where bytes < min(wantedBytes, Self.bytesMax) {
            guard found.entries.count < Self.entriesMax else { break }
            let (number, table) = tables[(first + place) % tables.count]
            try found.collect(
                store, from: Array(table.first), through: Array(table.last), bytesMax: .max / 2,
                entriesMax: .max / 2, database.removalRules.purges)
            numbers.append(number)
            bytes += Int(clamping: table.byteCount)
        }
        return (numbers, found)
    }

    /// Tables that no manifest names: what a merge had written when it failed. LevelDB removes them when it opens, but needs
    /// room for that.
    private func leftovers(_ manifest: ManifestScan?) -> [String] {
        guard let manifest, !manifest.isStrange, let names = try? FileSystem.list(store.path) else { return [] }
        return names.filter { FileNames.tableNumber($0).map { manifest.tables[$0] == nil } ?? false }
    }

    /// While the LevelDB is closed.
    /// - Returns: the bytes of what went.
    private func removeLeftovers(_ manifest: ManifestScan) -> Int {
        leftovers(manifest).reduce(0) { bytes, name in
            let path = store.path + "/" + name
            let size = FileSystem.size(path)
            return (try? FileSystem.removeFile(path)) != nil ? bytes + size : bytes
        }
    }

    /// While the LevelDB is closed.
    /// - Returns: the bytes of what went.
    private func remove(_ numbers: [UInt64], _ manifest: ManifestScan) throws -> Int {
        // LevelDB may have merged some meanwhile.
        let present = tables(manifest).filter { numbers.contains($0.number) }
        guard !present.isEmpty else { return 0 }
        do {
            try ManifestRemoval.append(present.map(\.number), to: manifest, directory: store.path)
        } catch {
            guard error.isFullDisk else { throw error }
            // What LevelDB tells of itself: nobody needs it, and it has the block or two that are missing.
            for name in ["LOG.old", "LOG"] { try? FileSystem.removeFile(store.path + "/" + name) }
            try ManifestRemoval.append(present.map(\.number), to: manifest, directory: store.path)
        }
        for (number, _) in present {
            for ending in ["ldb", "sst"] {
                try? FileSystem.removeFile(store.path + "/\(EpochInspection.padded(number)).\(ending)")
            }
        }
        return present.reduce(0) { $0 + Int(clamping: $1.table.byteCount) }
    }

    private func reopen() {
        do throws(LarderError) {
            try store.recover()
            // What a failed write has left may have become visible.
            database.shards.withAllLocked { for shard in database.shards.all { shard.forgetStored() } }
        } catch {
            database.context.report(.debug, "database '\(database.name)' cannot be reopened yet: \(error)")
        }
    }

    /// What was found before and is not there any more: a newer value may be in another table.
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
