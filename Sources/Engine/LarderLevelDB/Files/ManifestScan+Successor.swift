/// Handles the state that a machine failure may leave while LevelDB changes from one manifest to the next.
///
/// When LevelDB opens a database, it writes a new manifest, syncs the manifest and its name, renames `CURRENT` to name
/// it, and then removes the previous manifest and the logs that are now in tables. It does not sync the directory
/// between the last two steps. A file system that does not order changes of names may then lose the rename but keep the
/// removals. The new manifest is always complete at that time.
extension ManifestScan {
    /// The manifest that `CURRENT` should name but does not: the manifest with the highest number, if all its files
    /// exist, and if `CURRENT` is missing, truncated, or names an older manifest that lacks a file.
    /// - Returns: its name and its content; nil if nothing has to be done, or there is no proof.
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
            // If the process was killed during the change, both manifests have the same content.
            if try scan(directory: directory, name: named)?.isComplete(among: names) ?? false { return nil }
        }
        guard let scan = try scan(directory: directory, name: name), scan.isComplete(among: names) else { return nil }
        return (name, scan)
    }

    /// Whether LevelDB could open the database with this manifest: it is undamaged or only truncated, and its files
    /// exist. False for the first manifest of a new database, which names no log.
    private func isComplete(among names: Set<String>) -> Bool {
        guard log.problem == nil || log.isCutShort, !isStrange, logNumber > 0, nextFileNumber > 0 else { return false }
        guard Set(names.compactMap(FileNames.logNumber)).contains(logNumber) else { return false }
        return Set(names.compactMap(FileNames.tableNumber)).isSuperset(of: tables.keys)
    }
}
