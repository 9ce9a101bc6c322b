import LarderLevelDB
import LarderLevelDBSalvage

/// Copies everything readable of a damaged epoch (one LevelDB of a database) into a new epoch.
///
/// Used by only one thread.
struct EpochSalvage {
    /// The directory to read. Nothing writes to it.
    let source: String
    let indexing: ExpiryIndex.Rules
    let shouldStop: () -> Bool
    /// The report on what could not be read; nil before the first read.
    private var report: SalvageReport?
    /// The last commit unit that the journal must contain to match the copied entries, as recorded in the damaged
    /// epoch.
    private(set) var journalNeeded: UInt64 = 0
    private var entryCount = 0
    private var doubts: [String] = []

    private static let batchBytes = 1 << 20

    init(source: String, indexing: ExpiryIndex.Rules, shouldStop: @escaping () -> Bool) {
        (self.source, self.indexing, self.shouldStop) = (source, indexing, shouldStop)
    }

    /// Copies everything readable into `store`. Does not sync.
    /// - Parameter database: the database of the entries. If entries on the disk are unreadable, their copies in this
    ///   database's memory are used.
    mutating func copy(into store: EpochStore, of database: Database) throws(LarderError) {
        let name = store.databaseName
        do {
            let reader = try SalvageReader(path: source, options: try options())
            var batch = LarderLevelDB.WriteBatch()
            while try reader.next() {
                guard let value = reader.value else { continue }
                try take(reader.key, value, into: batch, name)
                guard batch.byteCount >= Self.batchBytes else { continue }
                if shouldStop() { throw Self.stopped(name) }
                try store.write(batch, sync: false)
                // A batch keeps its memory when it is cleared. If a long record has made it large, replace it.
                if batch.byteCount > 2 * Self.batchBytes { batch = LarderLevelDB.WriteBatch() } else { batch.clear() }
            }
            try store.write(batch, sync: false)
            report = reader.report
            if let lost = report?.lost, !lost.isEmpty { try copyFromMemory(lost, into: store, of: database) }
        } catch let error as LarderError {
            throw error
        } catch {
            throw LarderError(
                .io, "the rest of the database cannot be read now: \(error)", operation: "salvage", database: name,
                underlying: error)
        }
    }

    /// Whether entries may have been lost.
    var isInDoubt: Bool {
        guard let report, report.isComplete, doubts.isEmpty else { return true }
        return report.lost.contains { Self.entryKeys($0) != nil }
    }

    /// Records why the content of the epoch cannot be trusted. Called instead of ``copy(into:of:)``.
    mutating func leaveOut(_ why: String) { doubts.append(why) }

    private mutating func options() throws -> SalvageOptions { try Self.options(of: source, doubts: &doubts) }

    /// The options for reading the files of an epoch.
    /// - Parameter doubts: receives a message for each kind of loss that the salvage may not detect.
    static func options(of source: String, doubts: inout [String]) throws -> SalvageOptions {
        var options = SalvageOptions()
        switch try EpochInspection.note(in: source) {
        case .files(let files):
            options.syncedLogBytes = files.logs
            options.noted = files.knownManifest
            // Every version of Larder that writes this file also sorts the batches that it writes to LevelDB.
            options.batchesAreSorted = true
        case .missing: doubts.append("\(SyncedFiles.name) is missing: the end of a log may be lost undetected")
        case .unreadable: doubts.append("\(SyncedFiles.name) is damaged: the end of a log may be lost undetected")
        }
        // Entries of a table that LevelDB no longer used must not be copied: they may have been removed since.
        options.unknownIsLost = true
        options.ignoredFirstBytes = [KeyKind.ownDeadline, KeyKind.governed, KeyKind.hint]
        return options
    }

    private mutating func take(
        _ key: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer, into batch: LarderLevelDB.WriteBatch,
        _ name: String
    ) throws(LarderError) {
        switch key.first {
        case KeyKind.metadata:
            if key.elementsEqual(EpochMetadata.formatKey) {
                // The new epoch already has a record of its own format version.
                guard let version = value.first, version > EpochMetadata.formatVersion else { return }
                throw LarderError(
                    .newerFormat, "its entries have format \(version)", operation: "salvage", database: name)
            }
            // Hints are not copied, so the indexes are built anew.
            if IndexProgress.number(key) != nil { return }
            if key.elementsEqual(EpochMetadata.journalKey) { journalNeeded = BigEndian.read(value, at: 0) ?? 0 }
            batch.put(key, value)
        case KeyKind.record:
            entryCount += 1
            batch.put(key, value)
            guard let header = try? RecordHeader(parsing: value, nil) else { return }
            let slot = indexing.slot(header)
            if slot != 0 { batch.put(ExpiryIndex.key(slot, storedKey: key), ExpiryIndex.value) }
        default: break
        }
    }

    /// Copies from memory the clean entries whose keys could not be read from the disk. They are equal to those in
    /// LevelDB.
    private func copyFromMemory(
        _ lost: [LarderLevelDBSalvage.KeyRange], into store: EpochStore, of database: Database
    ) throws(LarderError) {
        for shard in database.shards.all {
            let batch = LarderLevelDB.WriteBatch()
            shard.lock.withLock {
                shard.table.forEachClean { entry in
                    let key = [KeyKind.record] + Array(entry.key)
                    guard entry.hasRecord, lost.contains(where: { $0.contains(key) }) else { return }
                    var record: [UInt8] = []
                    entry.appendStored(to: &record)
                    batch.put(key, record)
                    guard let header = entry.header(nil) else { return }
                    let slot = indexing.slot(header)
                    if slot != 0 {
                        batch.put(key.withUnsafeBytes { ExpiryIndex.key(slot, storedKey: $0) }, ExpiryIndex.value)
                    }
                }
            }
            try store.write(batch, sync: false)
        }
    }

    static func stopped(_ name: String) -> LarderError {
        LarderError(.closed, "the larder is being closed", operation: "salvage", database: name)
    }

    /// Returns the summary of the salvage, without the location of the damaged files.
    func summary(_ damage: String, at time: Int64) -> SalvageSummary {
        var summary = SalvageSummary(time: time)
        summary.damage = damage
        // If no files were read, the entries of all keys may be lost.
        let everything = [LarderLevelDBSalvage.KeyRange(lower: [], upper: nil)]
        let ranges = (report?.lost ?? everything).compactMap(Self.entryKeys)
        summary.entries = entryCount
        summary.pieces = report?.damageCount ?? (doubts.isEmpty ? 1 : 0)
        summary.bytes = report?.bytesLost ?? 0
        summary.lostCount = ranges.count
        summary.lost = ranges.prefix(SalvageSummary.rangesMax).map { "\($0)" }
        summary.isComplete = report?.isComplete ?? true
        summary.doubts = doubts
        if !summary.isComplete {
            summary.doubts.append("the manifest is lost; tables that may be obsolete were skipped")
        }
        return summary
    }

    /// Converts a range of LevelDB's keys to a range of entries' keys; nil if it cannot contain entries.
    static func entryKeys(_ range: LarderLevelDBSalvage.KeyRange) -> LarderLevelDBSalvage.KeyRange? {
        let end = [KeyKind.record + 1]
        guard range.lower.lexicographicallyPrecedes(end) else { return nil }
        if let upper = range.upper, !([KeyKind.record] as [UInt8]).lexicographicallyPrecedes(upper) { return nil }
        let lower = range.lower.first == KeyKind.record ? Array(range.lower.dropFirst()) : []
        let upper = range.upper.flatMap { $0.first == KeyKind.record ? Array($0.dropFirst()) : nil }
        return LarderLevelDBSalvage.KeyRange(lower: lower, upper: upper)
    }
}
