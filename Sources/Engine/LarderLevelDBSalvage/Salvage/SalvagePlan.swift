import LarderLevelDBFormat

/// Which tables and logs are current and must be read, according to CURRENT, the manifest, and the caller's notes.
struct SalvagePlan {
    var tables: [TableReference] = []
    /// The numbers of the logs, oldest first.
    var logs: [UInt64] = []
    /// The number of the log that must exist; nil if no log is required. 0 means that a log is required, because
    /// LevelDB always has one, but its number is unknown.
    var requiredLog: UInt64?
    /// The gaps (key ranges with lost versions) that arise because the current tables are unknown.
    var gaps: [Gap] = []

    private let files: SalvageFiles
    private let names: FoundFiles
    private let options: SalvageOptions
    private var noted: ManifestScan? { options.noted }

    /// - Parameter report: receives the damage and the notes.
    init(
        _ files: SalvageFiles, _ names: FoundFiles, _ options: SalvageOptions, _ report: inout SalvageReport
    ) throws(SalvageError) {
        self.files = files
        self.names = names
        self.options = options
        let found = try manifest(&report)
        if let (name, manifest) = found {
            if let comparator = manifest.scan.comparator, comparator != ManifestContents.comparator {
                throw SalvageError(
                    .unsupported, path: files.path, message: "its keys have a different order: \(comparator)")
            }
            if try take(manifest, name, &report) { return }
        } else if try takeNoted(behind: nil, &report) {
            return
        } else {
            try takeEverything(&report)
        }
        if !report.isComplete { loseTables() }
    }

    /// Called if it is unknown which tables are current. With ``SalvageOptions/unknownIsLost``, adds a gap for all
    /// keys, so that the reader does not return entries of tables.
    private mutating func loseTables() {
        guard options.unknownIsLost, let newest = tables.map(\.number).max() else { return }
        gaps.append(Gap(range: .everything, hidden: .table(number: newest, level: nil)))
    }

    // MARK: The manifest

    /// Finds the current manifest, and reads it; nil if none is usable.
    private func manifest(_ report: inout SalvageReport) throws(SalvageError) -> (name: String, ManifestContents)? {
        let named = try Self.current(files, names, &report)
        if let named {
            if let contents = try Self.read(named, files), contents.scan.isUsable { return (named, contents) }
            let isThere = names.manifests.values.contains(named)
            report.add(
                SalvageDamage(
                    part: .manifest, file: named, offset: 0, byteCount: 0,
                    reason: isThere ? "it has no useful content" : "the file is missing", range: nil))
        }
        for (number, name) in names.manifests.sorted(by: { $0.key > $1.key }) where name != named {
            if let noted, noted.number > number { break }
            guard let contents = try Self.read(name, files), contents.scan.isUsable else { continue }
            report.notes.append("\(name) is used, although CURRENT does not name it")
            // If CURRENT names another manifest, which cannot be used, `name` may be older than the tables. If the
            // caller has noted a manifest, older manifests were skipped above, so `name` is current.
            if named != nil, noted == nil {
                report.isComplete = false
                report.notes.append("\(name) may be older than the other files: removed entries may have come back")
            }
            return (name, contents)
        }
        return nil
    }

    /// Returns the name of the manifest in CURRENT; nil if CURRENT contains none, which is reported as damage.
    private static func current(_ files: SalvageFiles, _ names: FoundFiles, _ report: inout SalvageReport)
        throws(SalvageError) -> String?
    {
        var reason = "the file is missing"
        if names.hasCurrent, case .file(let count) = try files.look(at: FileNames.current) {
            let memory = try Memory(count: min(count, FileNames.currentBytesMax), path: files.path)
            let target = UnsafeMutableRawBufferPointer(start: memory.start, count: memory.count)
            let defect = try files.read(FileNames.current, at: 0, into: target)
            if defect == nil, let name = FileNames.manifest(inCurrent: memory.bytes) { return name }
            reason = defect ?? "it names no manifest"
        }
        guard names.mayHoldData else { return nil }
        report.add(
            SalvageDamage(part: .current, file: FileNames.current, offset: 0, byteCount: 0, reason: reason, range: nil))
        return nil
    }

    /// Reads a manifest; nil if there is no such file.
    private static func read(_ name: String, _ files: SalvageFiles) throws(SalvageError) -> ManifestContents? {
        guard case .file(let byteCount) = try files.look(at: name) else { return nil }
        return try ManifestContents(LogPieces(files: files, name: name, byteCount: byteCount))
    }

    // MARK: Current files

    /// Determines the current files from a manifest. If the manifest is damaged and files that it names are missing,
    /// uses the caller's notes or all tables.
    /// - Returns: false if the caller must call ``loseTables()``, because it is uncertain which tables are current.
    private mutating func take(
        _ manifest: ManifestContents, _ name: String, _ report: inout SalvageReport
    ) throws(SalvageError) -> Bool {
        let log = manifest.scan.logNumber
        logs = names.logs.keys.filter(manifest.scan.needs).sorted()
        requiredLog = log == 0 ? nil : log
        let missing = missingTables(manifest.scan)
        for hole in manifest.repaired {
            report.add(
                SalvageDamage(
                    part: .manifest, file: name, offset: hole.offset, byteCount: hole.byteCount, reason: hole.reason,
                    range: nil))
        }
        let isThere = missing.isEmpty && (log == 0 || names.logs[log] != nil)
        if let hole = manifest.damage, !(hole.isTorn && manifest.isTorn && isThere) {
            report.add(
                SalvageDamage(
                    part: .manifest, file: name, offset: hole.offset, byteCount: hole.byteCount, reason: hole.reason,
                    range: nil))
        } else if manifest.damage != nil {
            report.notes.append("\(name) ends within an edit that has not taken effect")
        }
        // LevelDB removes tables and logs as soon as an edit makes them obsolete. So if all files named in the readable
        // part of a damaged manifest still exist, they contain all entries: later files were made from these alone.
        guard manifest.damage != nil, !isThere else {
            tables = manifest.scan.tables.map(reference)
            return report.isComplete
        }
        if try takeNoted(behind: (name, manifest), &report) { return true }
        report.isComplete = false
        report.notes.append(
            "\(name) is damaged, and files that it names are missing: all tables are read, removed keys may come back"
        )
        requiredLog = logs.isEmpty ? 0 : nil
        let unnamed = names.tables.keys.filter { manifest.scan.tables[$0] == nil }
        let newest = unnamed.max() ?? 0
        // If a later table exists, a missing table may have been merged into it, and is not reported as lost.
        tables = manifest.scan.tables.filter { !missing.contains($0.key) || $0.key > newest }.map(reference)
        for number in unnamed { try take(table: number) }
        return false
    }

    /// Determines the current files if the manifest is lost or damaged: from the content that the caller has noted, or
    /// from the readable part of the manifest if that is newer.
    ///
    /// - Tables with numbers below the next file number are read only if they are in the noted content. Otherwise they
    ///   were obsolete.
    /// - Tables with higher numbers were created later. They are read in addition. At worst, they contain data that
    ///   other files have too.
    /// - A missing table was either merged into a later one, or is lost. Removals may have been lost with it, so the
    ///   result is marked as incomplete.
    /// - If the log is missing, its content may be in a newer table. This is certain if a file exists for every number
    ///   from the next file number to that of the newest table. If not, the result is incomplete too.
    ///
    /// - Parameter damaged: the name and the readable part of the damaged manifest; nil if there is none.
    /// - Returns: false if the caller has noted nothing.
    private mutating func takeNoted(
        behind damaged: (name: String, beginning: ManifestContents)?, _ report: inout SalvageReport
    ) throws(SalvageError) -> Bool {
        guard let noted, names.mayHoldData else { return false }
        var known = noted
        if let damaged {
            let number = names.manifests.first { $0.value == damaged.name }?.key ?? 0
            let isLonger = number == noted.number && damaged.beginning.damage?.offset ?? 0 > noted.log.goodBytes
            if number > noted.number || isLonger { known = damaged.beginning.scan }
        }
        let next = known.nextFileNumber
        let newer = names.tables.keys.filter { $0 >= next }
        let missing = missingTables(known)
        tables = known.tables.map(reference)
        for number in newer { try take(table: number) }
        let log = known.logNumber
        logs = names.logs.keys.filter(known.needs).sorted()
        // If there are newer tables, the log need not exist: its content may be in one of them.
        requiredLog = newer.isEmpty && log != 0 ? log : logs.isEmpty ? 0 : nil
        report.notes.append(
            "\(known.tables.count) current tables are known from a separate record; \(newer.count) tables are newer")
        let isLogGone = log != 0 && names.logs[log] == nil && options.syncedLogBytes[log] != 0
        if isLogGone, let newest = newer.max(), !(next...newest).allSatisfy(names.has) {
            report.isComplete = false
            report.notes.append("\(FileNames.log(log)) is missing, and with it the removals in it")
            loseTables()
        } else if !missing.isEmpty {
            report.isComplete = false
            report.notes.append("\(missing.count) of the recorded tables are missing: their content is unknown")
        }
        return true
    }

    /// Returns the numbers of the manifest's tables for which no file exists.
    private func missingTables(_ manifest: ManifestScan) -> Set<UInt64> {
        Set(manifest.tables.keys.filter { names.tables[$0] == nil })
    }

    private mutating func takeEverything(_ report: inout SalvageReport) throws(SalvageError) {
        guard names.mayHoldData else { return }
        report.isComplete = false
        report.notes.append("no manifest can be read: all tables are read, and removed entries may have come back")
        logs = names.logs.keys.sorted()
        requiredLog = logs.isEmpty ? 0 : nil
        for number in names.tables.keys { try take(table: number) }
    }

    private func reference(_ number: UInt64, _ table: ManifestScan.Table) -> TableReference {
        TableReference(
            number: number, name: names.tables[number] ?? FileNames.table(number), level: table.level,
            byteCount: table.byteCount, smallest: table.smallest.isEmpty ? nil : table.smallest,
            largest: table.largest.isEmpty ? nil : table.largest)
    }

    /// Adds a table that is not described in a manifest.
    private mutating func take(table number: UInt64) throws(SalvageError) {
        guard let name = names.tables[number] else { return }
        var byteCount = 0
        if case .file(let count) = try files.look(at: name) { byteCount = count }
        tables.append(
            TableReference(number: number, name: name, level: nil, byteCount: byteCount, smallest: nil, largest: nil))
    }
}
