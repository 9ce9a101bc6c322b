import LarderLevelDB
import LarderLevelDBSalvage
import LarderPlatform

/// Checks one LevelDB by reading all its files, without opening or changing it: whether the files are complete, the
/// entries can be read, and the expiry index and the indexes have all required keys.
///
/// It uses the same reader as a salvage. Nothing may write to the files at the same time.
struct EpochCheck {
    let directory: String
    let place: String
    let pointer: PointerFile
    /// The hashes of the database's keys in the journal, ascending; nil if there are too many.
    let journalKeys: [UInt64]?
    /// The last recorded time of the larder, in milliseconds since 1970; 0 if it is unknown.
    let now: Int64
    /// Makes the extractors of the indexes; nil: the indexes are not checked.
    let indexMaker: (any IndexMaker)?
    /// Called with the number of key and value bytes read.
    let onBytes: (Int) -> Void
    let shouldStop: () -> Bool

    static var stopped: LarderError { LarderError(.closed, "the check was stopped", operation: "check") }

    /// The maximum number of passes over the files. If the keys do not all fit into memory, each pass compares a part
    /// of them.
    private static let partsMax: UInt64 = 8
    /// The maximum number of keys that one message names.
    static let namesMax = 3
    static let remedy =
        "--repair keeps the damaged files in \(DamagedFiles.directoryName)/ and continues with everything readable, as a "
        + "daemon does when it finds the damage"

    /// Runs the check, and adds its results to `report`.
    /// - Returns: the last commit unit that the journal must contain, because this LevelDB needs it; nil if this
    ///   LevelDB cannot be read.
    func run(_ report: inout CheckReport) throws -> UInt64? {
        if try LarderLevelDB.Database.fileState(path: directory) == .absentOrEmpty {
            guard !pointer.isUnmade else { return 0 }
            report.add(.damage, place, "its files are missing from \(directory)", Self.remedy)
            return nil
        }
        if try EpochInspection.note(in: directory) == .unreadable {
            report.add(
                .damage, place, "\(SyncedFiles.name) cannot be read: LevelDB's log may have lost its end undetected",
                "the next start or --repair recreates it")
        }
        let indexes = pointer.indexes.map { OpenIndex(index: $0, extractor: indexMaker?.extractor(of: $0.definition)) }
        var walk = EpochWalk(pointer, journalKeys ?? [], now, indexes)
        let isDamaged = try addDamage(try read { walk.take($0, $1) }, &report)
        report.entries += walk.entries
        if isDamaged { report.damaged.insert(place) }
        guard !isDamaged, walk.addFormat(place, &report) else { return nil }
        walk.addRecords(place, &report)
        if journalKeys != nil {
            try addIndex(walk, &report)
            walk.addHints(place, &report)
        } else {
            report.notes.append("\(place): the expiry index was not checked, because the journal has too many entries")
        }
        return walk.journalNeeded
    }

    // MARK: Reading

    private func read(
        withIndex: Bool = true, _ visit: (UnsafeRawBufferPointer, UnsafeRawBufferPointer) -> Void
    ) throws -> SalvageReport {
        var doubts: [String] = []
        var options = try EpochSalvage.options(of: directory, doubts: &doubts)
        if withIndex {
            options.ignoredFirstBytes = []
            options.batchesAreSorted = false
        }
        let reader = try SalvageReader(path: directory, options: options)
        var count = 0
        while try reader.next() {
            guard let value = reader.value else { continue }
            visit(reader.key, value)
            count += reader.key.count + value.count
            guard count >= 1 << 20 else { continue }
            if shouldStop() { throw Self.stopped }
            onBytes(count)
            count = 0
        }
        onBytes(count)
        return reader.report
    }

    // MARK: The files

    /// Adds the damage in the files to `report`, and returns whether any of it makes entries unreadable.
    private func addDamage(_ salvage: SalvageReport, _ report: inout CheckReport) throws -> Bool {
        // After a machine failure, LevelDB's file CURRENT may be outdated. That is not damage, because opening the
        // files fixes it.
        if try EpochInspection.pendingCurrent(directory) != nil,
            salvage.damages.allSatisfy({ $0.part == .current || $0.part == .manifest })
        {
            return false
        }
        var filesDamage: String?
        do {
            try EpochInspection.inspect(directory)
        } catch let damage as FilesDamage {
            filesDamage = damage.message
        }
        if salvage.isUndamaged {
            guard let filesDamage else { return false }
            report.add(.damage, place, filesDamage, Self.remedy)
            return true
        }
        // Read again without the expiry index, as a salvage does, so that only damage which affects entries is
        // reported.
        let exact = try read(withIndex: false) { _, _ in }
        let shown = exact.isUndamaged ? salvage : exact
        for damage in shown.damages.prefix(CheckReport.linesMax) {
            report.add(.damage, place, Self.text(damage), Self.remedy)
        }
        let rest = shown.damageCount - min(shown.damages.count, CheckReport.linesMax)
        if rest > 0 { report.add(.damage, place, "\(rest) more parts of its files cannot be read", Self.remedy) }
        if shown.damageCount == 0 {
            let why = filesDamage ?? shown.notes.last ?? "it is unknown which of its files are current"
            report.add(.damage, place, why, Self.remedy)
        }
        return true
    }

    private static func text(_ damage: SalvageDamage) -> String {
        let lost = damage.range.map {
            EpochSalvage.entryKeys($0).map { "entries may be lost: \($0)" } ?? "no entry is lost"
        }
        return
            "\(damage.file): \(damage.part.rawValue) at \(damage.offset), \(damage.byteCount) bytes: \(damage.reason)"
            + (lost.map { ": " + $0 } ?? "")
    }

    // MARK: The expiry index

    private func addIndex(_ first: EpochWalk, _ report: inout CheckReport) throws {
        var first = first
        var missing = first.comparison.missing()
        let divisor = first.comparison.part.divisor
        for remainder in 1..<max(1, min(divisor, Self.partsMax)) {
            var walk = EpochWalk(
                pointer, journalKeys ?? [], now, [], IndexComparison.Part(divisor: divisor, remainder: remainder))
            _ = try read { walk.take($0, $1) }
            let more = walk.comparison.missing()
            missing.hashes += more.hashes
            missing.expired += more.expired
        }
        if divisor > Self.partsMax {
            report.notes.append(
                "\(place): the expiry index was checked for only \(Self.partsMax) of \(divisor) parts of the entries")
        }
        if missing.expired > 0 {
            // This is only a note: readers do not see expired entries, and the next scan of all entries removes them.
            report.notes.append(
                "\(place): \(counted(missing.expired, "expired entry has", "expired entries have")) no key in the "
                    + "expiry index; the next scan of all entries removes them")
        }
        guard !missing.hashes.isEmpty else { return }
        let names = try names(of: Set(missing.hashes))
        report.unindexed.insert(place)
        let count = missing.hashes.count
        let more = count - names.count
        report.add(
            .damage, place,
            counted(count, "entry has", "entries have") + " no key in the expiry index: "
                + names.joined(separator: ", ") + (more > 0 ? " and \(more) more" : ""),
            "nothing is lost, but they are removed up to six hours after they expire; --repair adds the keys")
    }

    private func names(of missing: Set<UInt64>) throws -> [String] {
        var names: [String] = []
        _ = try read(withIndex: false) { stored, _ in
            guard names.count < Self.namesMax, stored.first == KeyKind.record else { return }
            let key = UnsafeRawBufferPointer(rebasing: stored.dropFirst())
            let kinds = [KeyKind.ownDeadline, KeyKind.governed]
            guard kinds.contains(where: { missing.contains(IndexComparison.hash($0, key)) }) else { return }
            names.append("\"\(printableKey(key))\"")
        }
        return names
    }
}

/// The findings of a check while it reads one LevelDB: counts, invalid records, and keys that the expiry index lacks.
struct EpochWalk {
    private let pointer: PointerFile
    private let rules: ExpiryIndex.Rules
    /// The hashes of the keys in the journal, ascending. LevelDB's entries of these keys are outdated, and may lack
    /// index keys.
    private let journalKeys: [UInt64]
    private let now: Int64
    private(set) var entries = 0
    private(set) var journalNeeded: UInt64 = 0
    var comparison: IndexComparison
    private let indexes: [OpenIndex]
    /// Finds the hints that records must have; empty until the first record.
    private var hints = HintMaker([])
    private var readyIndexes: Set<UInt64> = []
    private var hintComparison = IndexComparison()
    private var format: [UInt8]?
    private var hasBadNeed = false
    private var badRecords: (count: Int, first: [String]) = (0, [])
    private var badIndexKeys = 0
    private var badHints = 0
    private var strangeKeys = 0

    init(
        _ pointer: PointerFile, _ journalKeys: [UInt64], _ now: Int64, _ indexes: [OpenIndex],
        _ part: IndexComparison.Part = IndexComparison.Part()
    ) {
        (self.pointer, self.journalKeys, self.now, self.indexes) = (pointer, journalKeys, now, indexes)
        rules = ExpiryIndex.Rules(pointer.rules.policy)
        comparison = IndexComparison(part)
    }

    mutating func take(_ stored: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer) {
        switch stored.first {
        case KeyKind.metadata: takeMetadata(stored, value)
        case KeyKind.record: takeRecord(UnsafeRawBufferPointer(rebasing: stored.dropFirst()), value)
        case KeyKind.ownDeadline, KeyKind.governed:
            guard stored.count >= 9, value.elementsEqual(ExpiryIndex.value), let bucket = BigEndian.read(stored, at: 1)
            else {
                badIndexKeys += 1
                return
            }
            comparison.meet(
                stored[0], UnsafeRawBufferPointer(rebasing: stored.dropFirst(9)), bucket: Int64(bitPattern: bucket))
        case KeyKind.hint:
            guard Hint.termCount(stored, value) != nil else {
                badHints += 1
                return
            }
            if !hints.isEmpty { hintComparison.meet(KeyKind.hint, stored, bucket: 0) }
        default: strangeKeys += 1
        }
    }

    private mutating func takeMetadata(_ stored: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer) {
        if stored.elementsEqual(EpochMetadata.formatKey) { format = Array(value.prefix(2)) }
        if let number = IndexProgress.number(stored), IndexProgress(parsing: value) == .ready {
            readyIndexes.insert(number)
            // Metadata comes before all records.
            hints = HintMaker(indexes.filter { readyIndexes.contains($0.index.number) })
        }
        if stored.elementsEqual(EpochMetadata.journalKey) {
            if let needed = BigEndian.read(value, at: 0), value.count == 8 {
                journalNeeded = needed
            } else {
                hasBadNeed = true
            }
        }
    }

    private mutating func takeRecord(_ key: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer) {
        entries += 1
        let header: RecordHeader
        do throws(RecordHeader.Defect) {
            header = try RecordHeader(parsing: value, nil)
        } catch {
            badRecords.count += 1
            if badRecords.first.count < EpochCheck.namesMax {
                badRecords.first.append("\"\(printableKey(key))\" (\(Self.text(error)))")
            }
            return
        }
        let slot = header.rule == .governed && pointer.isUnindexed ? 0 : rules.slot(header)
        guard slot != 0 || !hints.isEmpty, !isInJournal(key) else { return }
        if !hints.isEmpty {
            hints.forEachHint(key, value) { _, hint, _ in
                hint.withUnsafeBytes { hintComparison.want(KeyKind.hint, $0, from: 0) }
            }
        }
        guard slot != 0 else { return }
        let time = if case .own(let deadline) = header.rule { max(0, deadline) } else { max(0, header.storedAt) }
        comparison.want(
            UInt8(slot & 0xFF), key, from: time.addingClamped(header.grace ?? 0),
            isExpired: pointer.rules.freshness(header, now: now) == .gone)
    }

    private func isInJournal(_ key: UnsafeRawBufferPointer) -> Bool {
        if journalKeys.isEmpty { return false }
        let hash = IndexComparison.hash(KeyKind.record, key)
        let index = journalKeys.partitioningIndex { $0 >= hash }
        return index < journalKeys.count && journalKeys[index] == hash
    }

    static func text(_ defect: RecordHeader.Defect) -> String {
        switch defect {
        case .truncated: "it is cut short"
        case .newerVersion(let version): "it has the unknown version \(version)"
        case .unknownFlags(let flags): "its header has the unknown flags \(flags)"
        }
    }

    // MARK: Results

    /// Checks the format version in LevelDB, and returns whether this Larder can read the other records.
    func addFormat(_ place: String, _ report: inout CheckReport) -> Bool {
        guard let version = format?.first, version > 0 else {
            report.add(.damage, place, "its LevelDB has no format record", EpochCheck.remedy)
            return false
        }
        guard version > EpochMetadata.formatVersion else { return true }
        report.addNewer(place, version, reads: EpochMetadata.formatVersion)
        return false
    }

    /// Adds the hints that are missing. If there are very many hints, only a part of them is checked.
    mutating func addHints(_ place: String, _ report: inout CheckReport) {
        let missing = hintComparison.missing().hashes.count
        guard missing > 0 else { return }
        report.unhinted.insert(place)
        report.add(
            .damage, place, counted(missing, "hint is", "hints are") + " missing from its indexes",
            "queries may not find all entries; --repair builds the indexes anew")
    }

    func addRecords(_ place: String, _ report: inout CheckReport) {
        if badRecords.count > 0 {
            let more = badRecords.count - badRecords.first.count
            report.add(
                .manual, place,
                counted(badRecords.count, "entry", "entries") + " cannot be read: "
                    + badRecords.first.joined(separator: ", ") + (more > 0 ? " and \(more) more" : ""),
                "if a newer Larder wrote it, read it with that; otherwise write it again or delete it")
        }
        if badIndexKeys > 0 {
            report.add(
                .manual, place, "\(badIndexKeys) keys of the expiry index are invalid",
                "they do no harm; a purge of the database removes them")
        }
        if badHints > 0 {
            report.add(
                .manual, place, "\(badHints) hints of indexes are invalid",
                "they do no harm; a purge of the database removes them")
        }
        if strangeKeys > 0 {
            report.add(
                .manual, place, "\(strangeKeys) keys in its LevelDB have an unknown kind",
                "they do no harm; a purge of the database removes them")
        }
        if hasBadNeed {
            report.add(
                .manual, place, "its record of which part of the journal it needs is invalid",
                "the next checkpoint writes it again")
        }
    }
}
