import LarderPlatform

/// The previous backup: its tables are linked, if they have the same content.
///
/// Names and lengths do not show that. Two larders restored from one backup give tables the same names; so does a
/// restored larder. Nor does the list of the previous backup show what has become of its files.
struct FormerBackup {
    let path: String
    private let list: BackupList

    /// How a table of the previous backup can be used.
    enum Reuse {
        /// It is linked.
        case linked
        /// It has another content.
        case differs
        /// It cannot be used, because of damage if there is a text.
        case useless(String?)
    }

    /// Returns the newest backup in a directory whose list can be read.
    /// - Parameter note: receives the problems of newer ones.
    static func newest(of directory: BackupDirectory, note: (String) -> Void) throws(BackupError) -> FormerBackup? {
        for name in try directory.names().reversed() {
            let path = directory.path + "/" + name
            do throws(BackupError) {
                return FormerBackup(path: path, list: try BackupList(of: try BackupDirectory.backup(at: path)))
            } catch {
                note("\(error); nothing was linked from \(path)")
            }
        }
        return nil
    }

    /// Whether it has a table of a name.
    func has(_ name: String) -> Bool { list.files[name] != nil }

    /// Links a table if its content is the same.
    /// - Parameters:
    ///   - name: the name of a table in the previous backup.
    ///   - source: the path of the new table.
    ///   - file: the content of the new table.
    /// - Throws: if the two are one file, and this has changed since; and if the system refuses.
    func link(_ name: String, sameAs source: String, _ file: BackupList.File, to target: String) throws -> Reuse {
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
        // Too many links, for instance.
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
            "the larder's table \(name) is damaged: it has changed since \(path), which shares the file, was made. "
                + "Repair the larder with larderctl check --repair; a backup in another directory copies the file as it is"
        )
    }
}
