/// Finds the manifest that `CURRENT` should name, if the machine failed while LevelDB was changing to a new manifest.
///
/// When LevelDB opens a database, it writes a new manifest, syncs the manifest and the directory, and replaces
/// `CURRENT` by a rename. It then removes the previous manifest and the logs whose content is now in tables, without
/// first syncing the directory. So if the machine fails, some file systems may lose the rename but keep the removals.
/// The new manifest is always complete at that time.
extension ManifestScan {
    /// Returns the manifest that `CURRENT` should name but does not: the manifest with the highest number. All files
    /// that it names must exist, and `CURRENT` must be unusable. That is, `CURRENT` is missing or truncated, or it
    /// names an older manifest, some of whose files are missing.
    /// - Returns: the name and content of the manifest; nil if it is uncertain whether `CURRENT` is wrong.
    package static func successor(
        directory: String
    ) throws(LevelDBError) -> (name: String, scan: ManifestScan)? {
        let operation = "look for manifests"
        guard let names = try FileState.fileNames(directory, operation),
            let name = names.max(by: { FileNames.manifestNumber($0) ?? 0 < FileNames.manifestNumber($1) ?? 0 }),
            let highest = FileNames.manifestNumber(name)
        else { return nil }
        if let named = try FileState.currentManifest(directory, operation) {
            guard let number = FileNames.manifestNumber(named), number < highest else { return nil }
            // If all files of CURRENT's manifest exist, it can be used: it has the same content as the newer manifest.
            if try scan(directory: directory, name: named)?.isComplete(among: names) ?? false { return nil }
        }
        guard let scan = try scan(directory: directory, name: name), scan.isComplete(among: names) else { return nil }
        return (name, scan)
    }

    /// Whether LevelDB could open the database with this manifest: the manifest is undamaged or only truncated, and the
    /// files that it names exist. False for the first manifest of a new database, which names no log.
    private func isComplete(among names: Set<String>) -> Bool {
        guard log.problem == nil || log.isCutShort, !hasUnknownEdit, logNumber > 0, nextFileNumber > 0 else {
            return false
        }
        guard Set(names.compactMap(FileNames.logNumber)).contains(logNumber) else { return false }
        return Set(names.compactMap(FileNames.tableNumber)).isSuperset(of: tables.keys)
    }
}
