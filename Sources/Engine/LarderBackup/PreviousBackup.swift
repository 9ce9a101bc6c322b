import LarderPlatform

/// The previous backup. Tables that have not changed since then become hard links in the new backup.
///
/// The contents are compared, because tables with the same name and length may differ: two larders restored from one
/// backup give their new tables the same names. In addition, files of the previous backup may have been damaged since
/// its list was written.
struct PreviousBackup {
    let path: String
    private let list: BackupList

    /// The result of trying to link to a table of the previous backup.
    enum Reuse {
        /// The new backup has a hard link to the table.
        case linked
        /// The table has different content.
        case differs
        /// The table cannot be linked. The text describes the table's damage; nil if the table is undamaged.
        case useless(String?)
    }

    /// Returns the newest backup that has a readable list; nil if there is none.
    /// - Parameter note: receives the problem of each newer backup, whose list is unreadable.
    static func newest(of directory: BackupDirectory, note: (String) -> Void) throws(BackupError) -> PreviousBackup? {
        for name in try directory.names().reversed() {
            let path = directory.path + "/" + name
            do throws(BackupError) {
                return PreviousBackup(path: path, list: try BackupList(of: try BackupDirectory.backup(at: path)))
            } catch {
                note("\(error); nothing was linked from \(path)")
            }
        }
        return nil
    }

    /// Whether the previous backup has a file with this name.
    func has(_ name: String) -> Bool { list.files[name] != nil }

    /// Creates a hard link to a table of the previous backup if it has the same content as the larder's table.
    /// - Parameters:
    ///   - name: the name of the table.
    ///   - source: the path of the larder's table.
    ///   - file: the digest of the larder's table.
    ///   - target: the path of the new link.
    /// - Throws: `.damaged` if the larder and the previous backup share the file, and its content has changed since
    ///   that backup. Also errors of the operating system.
    func link(_ name: String, sameAs source: String, _ file: FileDigest, to target: String) throws -> Reuse {
        guard let known = list.files[name] else { return .useless(nil) }
        let own = path + "/" + name
        let status = try FileSystem.linkStatus(own)
        let isShared = try Self.areSame(status, FileSystem.linkStatus(source))
        guard file == known else {
            if isShared { throw changed(name) }
            return .differs
        }
        guard let status else { return .useless("\(own) is missing") }
        guard status.st_mode & S_IFMT == S_IFREG else { return .useless("\(own) is not a file") }
        // The file may have too many links, for example.
        guard (try? FileSystem.hardLink(own, to: target)) != nil else { return .useless(nil) }
        if isShared { return .linked }
        let problem: String?
        do throws(FileError) {
            let found = try FileDigest.read(target)
            problem = BackupReader.problem(own, known, found)
        } catch {
            problem = "\(own) cannot be read (\(error))"
        }
        guard let problem else { return .linked }
        try FileSystem.removeFile(target)
        return .useless(problem)
    }

    private static func areSame(_ one: stat?, _ other: stat?) -> Bool {
        guard let one, let other else { return false }
        return one.st_dev == other.st_dev && one.st_ino == other.st_ino
    }

    private func changed(_ name: String) -> BackupError {
        .damaged(
            "the larder's table \(name) is damaged: it was changed after the backup \(path) made a hard link to it. "
                + "Repair the larder with larderctl check --repair; a backup in another directory copies the file as it is"
        )
    }
}
