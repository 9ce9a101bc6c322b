import LarderLevelDBFormat
import LarderPlatform

/// Copies the files of one LevelDB while it may be in use. Makes hard links to tables instead of copies, because tables
/// never change.
///
/// LevelDB may merge tables at any time, and records each merge in its manifest. If the manifest is the same before and
/// after all other files were copied, the copies fit together. Otherwise another round copies the new files.
struct EpochImage {
    let source: String
    let place: String
    /// Whether missing tables are no error: a check of the image reports them.
    var mayLackTables = false

    /// The maximum number of rounds. A round takes milliseconds and a merge takes longer, so normally the end of a
    /// merge interrupts only a few rounds. There is a limit because other threads may wait for all rounds.
    private static let roundsMax = 50

    /// - Throws: if a file cannot be read or written, or if the files are damaged.
    func make() throws {
        try FileSystem.makeDirectory(place)
        for _ in 0..<Self.roundsMax {
            guard let copied = try round() else { continue }
            return try removeOthers(than: copied)
        }
        throw LarderError(.io, "LevelDB keeps merging the database's tables; try again later", operation: "backup")
    }

    /// Runs one round: copies the files that are not in the image yet.
    /// - Returns: the names of the manifest and of its tables and logs; nil if LevelDB has changed its manifest in the
    ///   meantime.
    func round() throws -> Set<String>? {
        // Read the file of ``SyncedFiles`` first: the other files must contain everything that this file records.
        let note = try FileSystem.read(source + "/" + SyncedFiles.name, bytesMax: SyncedFiles.bytesMax)
        let current = try FileSystem.read(source + "/" + FileNames.current)
        guard let current, let manifest = FileNames.manifest(inCurrent: current) else {
            throw FilesDamage(message: "\(source) has no \(FileNames.current)")
        }
        guard let edits = try FileSystem.read(source + "/" + manifest, bytesMax: .max) else {
            guard try FileSystem.read(source + "/" + FileNames.current) != current else {
                throw FilesDamage(message: "\(source)/\(manifest) is missing")
            }
            return nil
        }
        try FileSystem.writeFile(place + "/" + manifest, edits)
        try FileSystem.writeFile(place + "/" + FileNames.current, current)
        if let note { try FileSystem.writeFile(place + "/" + SyncedFiles.name, note) }
        guard let scan = try ManifestScan.scan(directory: place), !scan.hasUnknownEdit else {
            throw FilesDamage(message: "\(source)/\(manifest) is damaged")
        }
        guard let added = try addFiles(scan), let status = try FileSystem.linkStatus(source + "/" + manifest),
            Int(status.st_size) == edits.count,
            try FileSystem.read(source + "/" + FileNames.current) == current
        else { return nil }
        let numbers = Set(added.compactMap(FileNames.tableNumber))
        if !mayLackTables, let missing = scan.tables.keys.first(where: { !numbers.contains($0) }) {
            throw FilesDamage(message: "\(source) has no table \(missing)")
        }
        return added.union([manifest])
    }

    /// Adds the tables and logs that the manifest needs.
    /// - Returns: their names; nil if LevelDB has removed one of them in the meantime.
    private func addFiles(_ scan: ManifestScan) throws -> Set<String>? {
        var added: Set<String> = []
        for name in try FileSystem.list(source) {
            if let number = FileNames.tableNumber(name), scan.tables[number] != nil {
                guard try link(name) else { return nil }
            } else if let number = FileNames.logNumber(name), scan.needs(log: number) {
                guard let bytes = try FileSystem.read(source + "/" + name, bytesMax: .max) else { return nil }
                try FileSystem.writeFile(place + "/" + name, bytes)
            } else {
                continue
            }
            added.insert(name)
        }
        return added
    }

    /// - Returns: false if the file no longer exists.
    private func link(_ name: String) throws(FileError) -> Bool {
        do throws(FileError) {
            try FileSystem.hardLink(source + "/" + name, to: place + "/" + name)
        } catch {
            if error.number == EEXIST { return true }
            if error.number == ENOENT { return false }
            throw error
        }
        return true
    }

    /// Removes the leftovers of earlier rounds from the image.
    func removeOthers(than copied: Set<String>) throws {
        for name in try FileSystem.list(place) where !copied.contains(name) {
            let number = FileNames.tableNumber(name) ?? FileNames.logNumber(name) ?? FileNames.manifestNumber(name)
            if number != nil { try FileSystem.removeFile(place + "/" + name) }
        }
    }
}
