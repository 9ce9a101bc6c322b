import LarderLevelDB
import LarderPlatform

/// Copies the files of one LevelDB that may be in use. Tables are hard-linked, because they never change.
///
/// LevelDB merges tables at any time, and records that in its manifest. If the manifest was the same before and after
/// everything else was copied, the copies belong together; otherwise the copying is repeated, for new files only.
struct EpochImage {
    let source: String
    let place: String

    /// A round takes milliseconds, and a merge takes longer, so only a few rounds overlap with the end of a merge.
    /// Other threads wait for all rounds.
    private static let roundsMax = 50

    /// - Throws: if a file cannot be read or written, or if the files are damaged.
    func make() throws {
        try FileSystem.makeDirectory(place)
        for _ in 0..<Self.roundsMax {
            guard let copied = try round() else { continue }
            return try removeOthers(than: copied)
        }
        throw LarderError(.io, "its tables are merged continuously; try again later", operation: "backup")
    }

    /// Copies the files that are not in the image yet.
    /// - Returns: the names of the tables and logs that belong together, and of their manifest; nil if LevelDB has
    ///   merged in the meantime.
    func round() throws -> Set<String>? {
        // Read the note first, because the other files must contain everything that it records.
        let note = try FileSystem.read(source + "/" + SyncedFiles.name, bytesMax: SyncedFiles.bytesMax)
        let current = try FileSystem.read(source + "/" + FileNames.current)
        guard let current, let manifest = Self.name(in: current) else {
            throw FilesDamage(message: "\(source) has no \(FileNames.current)")
        }
        guard let edits = try FileSystem.read(source + "/" + manifest, bytesMax: .max) else { return nil }
        try FileSystem.writeFile(place + "/" + manifest, edits)
        try FileSystem.writeFile(place + "/" + FileNames.current, current)
        if let note { try FileSystem.writeFile(place + "/" + SyncedFiles.name, note) }
        guard let scan = try ManifestScan.scan(directory: place), !scan.isStrange else {
            throw FilesDamage(message: "\(source)/\(manifest) is damaged")
        }
        guard let added = try addFiles(scan), let status = try FileSystem.linkStatus(source + "/" + manifest),
            Int(status.st_size) == edits.count,
            try FileSystem.read(source + "/" + FileNames.current) == current
        else { return nil }
        return added.union([manifest])
    }

    private static func name(in current: [UInt8]) -> String? {
        guard current.last == UInt8(ascii: "\n"), let name = String(validating: current.dropLast(), as: UTF8.self),
            FileNames.manifestNumber(name) != nil
        else { return nil }
        return name
    }

    /// Adds tables and logs.
    /// - Returns: their names; nil if one has disappeared.
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

    /// Removes the leftovers of earlier rounds. Missing files are not searched for, because LevelDB continues merging
    /// in the original; they are found when the copy is opened.
    func removeOthers(than copied: Set<String>) throws {
        for name in try FileSystem.list(place) where !copied.contains(name) {
            let number = FileNames.tableNumber(name) ?? FileNames.logNumber(name) ?? FileNames.manifestNumber(name)
            if number != nil { try FileSystem.removeFile(place + "/" + name) }
        }
    }
}
