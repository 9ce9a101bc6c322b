import Platform

/// Reads a backup: checks it, or makes a larder of it.
package struct BackupReader {
    private let path: String
    private let list: BackupList

    /// - Parameter path: a backup, or a directory of backups: then the newest.
    package init(_ path: String) throws(BackupError) {
        self.path = try BackupDirectory.backup(at: path)
        list = try BackupList(of: self.path)
    }

    /// The backup's directory.
    package var directory: String { path }
    package var fileCount: Int { list.files.count }
    package var byteCount: Int { list.byteCount }

    /// Reads all files.
    /// - Returns: what is wrong, one line each; empty if nothing is.
    package func verify(note: (BackupProgress) -> Void = { _ in }) throws(BackupError) -> [String] {
        var problems: [String] = []
        var progress = BackupProgress(totalBytes: list.byteCount)
        for (name, file) in list.files.sorted(by: { $0.key < $1.key }) {
            do throws(FileError) {
                let found = try FileDigest.read(path + "/" + name)
                if let problem = Self.problem(name, file, found) { problems.append(problem) }
            } catch {
                problems.append(error.number == ENOENT ? "\(name) is missing" : "\(error)")
            }
            progress.doneBytes += file.byteCount
            note(progress)
        }
        let known = Set(list.files.keys).union([BackupList.fileName])
        for name in try BackupWriter.files(below: path) where !known.contains(name) {
            problems.append("\(name) does not belong to the backup")
        }
        return problems
    }

    private static func problem(
        _ name: String, _ file: BackupList.File, _ found: (digest: FileDigest, byteCount: Int)
    ) -> String? {
        if found.byteCount != file.byteCount {
            return "\(name) has \(found.byteCount) bytes instead of \(file.byteCount)"
        }
        return found.digest == file.digest ? nil : "\(name) is damaged: its bytes are not those that were written"
    }

    /// Makes a larder of the backup: all files are copied and checked, and then the directory gets its name.
    /// - Parameter place: the larder's directory: absent or empty.
    package func restore(to place: String, note: (BackupProgress) -> Void = { _ in }) throws(BackupError) {
        var isFree = !FileSystem.exists(place)
        do throws(FileError) {
            if !isFree, FileSystem.isDirectory(place) { isFree = try FileSystem.list(place).isEmpty }
        } catch {
            throw .place("\(error)")
        }
        guard isFree else {
            throw .place(
                "\(place) exists and is not empty; a backup is restored to a new directory. To replace a larder, stop its "
                    + "daemon, move the directory away, and restore then")
        }
        let unfinished =
            FileSystem.parent(place) + "/" + BackupDirectory.unfinishedPrefix
            + (place.split(separator: "/").last.map(String.init) ?? "larder")
        do throws(FileError) {
            try FileSystem.makeDirectories(FileSystem.parent(place))
            try FileSystem.removeTree(unfinished)
            try FileSystem.makeDirectory(unfinished)
        } catch {
            throw .place("\(error)")
        }
        do {
            try copyAll(to: unfinished, note)
            if FileSystem.exists(place) { rmdir(place) }
            try FileSystem.rename(unfinished, to: place)
            try FileSystem.syncDirectory(FileSystem.parent(place))
        } catch {
            try? FileSystem.removeTree(unfinished)
            throw (error as? BackupError) ?? .io("\(error); nothing was restored")
        }
    }

    private func copyAll(to place: String, _ note: (BackupProgress) -> Void) throws {
        var progress = BackupProgress(totalBytes: list.byteCount)
        var directories: Set<String> = [place]
        for (name, file) in list.files.sorted(by: { $0.key < $1.key }) {
            let target = place + "/" + name
            try FileSystem.makeDirectories(FileSystem.parent(target))
            directories.insert(FileSystem.parent(target))
            let found = try FileDigest.copy(path + "/" + name, to: target)
            if let problem = Self.problem(name, file, found) {
                throw BackupError.damaged("\(path)/\(problem); nothing was restored")
            }
            progress.doneBytes += file.byteCount
            note(progress)
        }
        for directory in directories.sorted(by: >) { try FileSystem.syncDirectory(directory) }
    }
}
