import LarderPlatform

/// Checks a backup, or restores a larder from it.
package struct BackupReader {
    private let path: String
    private let list: BackupList

    /// Reads the backup's list of files.
    /// - Parameter path: a backup, or a directory of backups, of which the newest is used.
    package init(_ path: String) throws(BackupError) {
        self.path = try BackupDirectory.backup(at: path)
        list = try BackupList(of: self.path)
    }

    /// The backup's directory.
    package var directory: String { path }
    package var fileCount: Int { list.files.count }
    package var byteCount: Int { list.byteCount }

    /// Reads all files of the backup, and compares them with its list.
    /// - Parameter note: receives the numbers of bytes that are done, and of all bytes, after each file.
    /// - Returns: the problems, one line each; empty if there are none.
    package func verify(note: (_ done: Int, _ total: Int) -> Void = { _, _ in }) throws(BackupError) -> [String] {
        var problems: [String] = []
        var done = 0
        for (name, file) in list.files.sorted(by: { $0.key < $1.key }) {
            do throws(FileError) {
                let found = try FileDigest.read(path + "/" + name)
                if let problem = Self.problem(name, file, found) { problems.append(problem) }
            } catch {
                guard let problem = Self.problem(name, error) else { throw .io("\(error)") }
                problems.append(problem)
            }
            done += file.byteCount
            note(done, list.byteCount)
        }
        let known = Set(list.files.keys).union([BackupList.fileName])
        for name in try BackupWriter.files(below: path, withEmpty: true) where !known.contains(name) {
            problems.append("\(name) does not belong to the backup")
        }
        return problems
    }

    /// Describes the problem of a file of the backup that cannot be read.
    /// - Returns: nil if the backup is not to blame, for example if this process has no permission to read it.
    static func problem(_ name: String, _ error: FileError) -> String? {
        switch error.number {
        case ENOENT, ENOTDIR: "\(name) is missing"
        case ELOOP, EISDIR, ENXIO: "\(name) is not a file"
        case EIO: "\(name) cannot be read: \(error)"
        default: nil
        }
    }

    /// Compares a file's digest with that in the backup's list. Returns a description of the difference;
    /// nil if there is none.
    static func problem(_ name: String, _ file: FileDigest, _ found: FileDigest) -> String? {
        if found.byteCount != file.byteCount {
            return "\(name) has \(found.byteCount) bytes instead of \(file.byteCount)"
        }
        return found == file ? nil : "\(name) is damaged: its content has changed"
    }

    /// Restores the backup as a larder: copies all files to a temporary directory, verifies them, and renames the
    /// directory to `place`. On failure, removes the temporary directory.
    /// - Parameters:
    ///   - place: the directory of the new larder; it must be missing or empty.
    ///   - note: receives the numbers of bytes that are done, and of all bytes, after each file.
    package func restore(to place: String, note: (_ done: Int, _ total: Int) -> Void = { _, _ in }) throws(BackupError)
    {
        let restoration = try Restoration(of: place)
        do {
            try copyAll(to: restoration.unfinished, note)
            try restoration.finish()
        } catch {
            restoration.undo()
            throw (error as? BackupError) ?? .io("\(error); nothing was restored")
        }
    }

    private func copyAll(to place: String, _ note: (_ done: Int, _ total: Int) -> Void) throws {
        var done = 0
        var directories: Set<String> = [place]
        for (name, file) in list.files.sorted(by: { $0.key < $1.key }) {
            let target = place + "/" + name
            try FileSystem.makeDirectories(FileSystem.parent(target))
            directories.insert(FileSystem.parent(target))
            if let problem = try copy(name, file, to: target) {
                throw BackupError.damaged("\(path)/\(problem); nothing was restored")
            }
            done += file.byteCount
            note(done, list.byteCount)
        }
        for directory in directories.sorted(by: >) { try FileSystem.syncDirectory(directory) }
    }

    /// Copies and verifies one file.
    /// - Returns: the problem of the file in the backup; nil if there is none.
    private func copy(_ name: String, _ file: FileDigest, to target: String) throws(FileError) -> String? {
        let source = path + "/" + name
        do throws(FileError) {
            return Self.problem(name, file, try FileDigest.copy(source, to: target))
        } catch {
            guard error.path == source, let problem = Self.problem(name, error) else { throw error }
            return problem
        }
    }
}
