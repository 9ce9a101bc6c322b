/// What a failure of the machine may leave of LevelDB's change from one manifest to the next.
///
/// Whenever LevelDB opens a database it writes a manifest anew, syncs it and its name, renames `CURRENT` so that it names that,
/// and removes the former manifest and the logs that are in tables by then. It does not sync the directory between the last two:
/// a file system that orders no names may lose the former and keep the latter. The new manifest is complete whenever that happens.
extension ManifestScan {
    /// The manifest that `CURRENT` is to name and does not: the one with the highest number, if all that it names is there,
    /// and if `CURRENT` is missing, cut short, or names one with a lower number of which something is gone.
    /// - Returns: its name and what it says; nil if nothing is to be done, or nothing proves what.
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
            // As after a kill in the middle of the change: both say the same.
            if try scan(directory: directory, name: named)?.isComplete(among: names) ?? false { return nil }
        }
        guard let scan = try scan(directory: directory, name: name), scan.isComplete(among: names) else { return nil }
        return (name, scan)
    }

    /// Whether LevelDB could go by it: nothing of it is bad, and all that it names is there. The one that a creation begins with
    /// names no log, and does not count.
    private func isComplete(among names: Set<String>) -> Bool {
        guard log.problem == nil || log.isCutShort, !isStrange, logNumber > 0, nextFileNumber > 0 else { return false }
        guard Set(names.compactMap(FileNames.logNumber)).contains(logNumber) else { return false }
        return Set(names.compactMap(FileNames.tableNumber)).isSuperset(of: tables.keys)
    }
}
