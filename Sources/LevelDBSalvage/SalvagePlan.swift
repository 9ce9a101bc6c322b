/// Which files count, as far as CURRENT and the manifest can tell.
struct SalvagePlan {
    var tables: [TableReference] = []
    /// Oldest first.
    var logs: [UInt64] = []
    /// The log that has to be there; nil: none is known. 0: any, and there is none, although LevelDB always has one.
    var requiredLog: UInt64?

    private let files: SalvageFiles
    private let names: FileNames

    /// - Parameter report: gets what is damaged, and what is worth saying.
    init(_ files: SalvageFiles, _ names: FileNames, _ report: inout SalvageReport) throws(SalvageError) {
        self.files = files
        self.names = names
        guard let (name, manifest) = try Self.manifest(files, names, &report) else {
            try takeEverything(&report)
            return
        }
        if let comparator = manifest.comparator, comparator != ManifestReader.comparator {
            throw SalvageError(.unsupported, path: files.path, message: "its keys have another order: \(comparator)")
        }
        try take(manifest, name, &report)
    }

    // MARK: The manifest

    /// The manifest that counts; nil where none is of use.
    private static func manifest(_ files: SalvageFiles, _ names: FileNames, _ report: inout SalvageReport)
        throws(SalvageError) -> (name: String, ManifestContents)?
    {
        let named = try current(files, names, &report)
        if let named {
            if let contents = try read(named, files), contents.isUsable { return (named, contents) }
            let isThere = names.manifests.values.contains(named)
            report.add(
                SalvageDamage(
                    part: .manifest, file: named, offset: 0, byteCount: 0,
                    reason: isThere ? "it says nothing that is of use" : "the file is missing", range: nil))
        }
        for (_, name) in names.manifests.sorted(by: { $0.key > $1.key }) where name != named {
            guard let contents = try read(name, files), contents.isUsable else { continue }
            report.notes.append("\(name) is used, which CURRENT does not name")
            if named != nil {
                report.isComplete = false
                report.notes.append("\(name) may be older than what is there: removed entries may have come back")
            }
            return (name, contents)
        }
        return nil
    }

    /// The name in CURRENT; nil where it says none.
    private static func current(_ files: SalvageFiles, _ names: FileNames, _ report: inout SalvageReport)
        throws(SalvageError) -> String?
    {
        var reason = "the file is missing"
        if names.hasCurrent, case .file(let count) = try files.look(at: "CURRENT") {
            // Longer than any name of a manifest.
            let memory = try Memory(count: min(count, 64), path: files.path)
            let target = UnsafeMutableRawBufferPointer(start: memory.start, count: memory.count)
            switch try files.read("CURRENT", at: 0, into: target) {
            case .unreadable(let why): reason = why
            case .complete:
                let text = String(decoding: memory.bytes, as: UTF8.self)
                if text.hasSuffix("\n"),
                    FileNames.number(String(text.dropLast()), prefix: "MANIFEST-", suffix: "") != nil
                {
                    return String(text.dropLast())
                }
                reason = "it names no manifest"
            }
        }
        guard names.mayHoldData else { return nil }
        report.add(SalvageDamage(part: .current, file: "CURRENT", offset: 0, byteCount: 0, reason: reason, range: nil))
        return nil
    }

    /// nil where there is no such file.
    private static func read(_ name: String, _ files: SalvageFiles) throws(SalvageError) -> ManifestContents? {
        guard case .file(let byteCount) = try files.look(at: name) else { return nil }
        return try ManifestReader.read(LogPieces(files: files, name: name, byteCount: byteCount))
    }

    // MARK: What counts

    private mutating func take(_ manifest: ManifestContents, _ name: String, _ report: inout SalvageReport)
        throws(SalvageError)
    {
        let log = manifest.logNumber ?? 0
        logs = names.logs.keys.filter { $0 >= log || $0 == manifest.previousLogNumber && $0 != 0 }.sorted()
        requiredLog = log == 0 ? nil : log
        let missing = missingTables(manifest)
        for hole in manifest.mended {
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
            report.notes.append("\(name) ends within an edit that nobody has acted upon")
        }
        // Tables and logs are removed as soon as an edit says that they no longer count. Where all that a beginning
        // of the manifest names is there, that beginning says all: whatever was made later was made of these.
        guard manifest.damage != nil, !isThere else {
            tables = manifest.tables.values.map(reference)
            return
        }
        report.isComplete = false
        report.notes.append(
            "\(name) is damaged, and files that it names are gone: all tables are read, removed keys may come back"
        )
        requiredLog = logs.isEmpty ? 0 : nil
        let unnamed = names.tables.keys.filter { manifest.tables[$0] == nil }
        let newest = unnamed.max() ?? 0
        // A table that is gone was merged into a later one, if there is any.
        tables = manifest.tables.values.filter { !missing.contains($0.number) || $0.number > newest }.map(reference)
        for number in unnamed { try take(table: number) }
    }

    /// Tables that the manifest names and that are not there, not even by name.
    private func missingTables(_ manifest: ManifestContents) -> Set<UInt64> {
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

    private func reference(_ entry: TableEntry) -> TableReference {
        TableReference(
            number: entry.number, name: names.tables[entry.number] ?? "\(FileNames.padded(entry.number)).ldb",
            level: entry.level, byteCount: entry.byteCount, smallest: entry.smallest, largest: entry.largest)
    }

    /// A table of which nothing is known.
    private mutating func take(table number: UInt64) throws(SalvageError) {
        guard let name = names.tables[number] else { return }
        var byteCount = 0
        if case .file(let count) = try files.look(at: name) { byteCount = count }
        tables.append(
            TableReference(number: number, name: name, level: nil, byteCount: byteCount, smallest: nil, largest: nil))
    }
}

extension FileNames {
    /// A table, a log, or a manifest. The first manifest alone holds nothing: it is what a creation writes before
    /// CURRENT.
    var mayHoldData: Bool { !tables.isEmpty || !logs.isEmpty || manifests.keys.contains { $0 != 1 } }
}
