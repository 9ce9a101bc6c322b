import LarderPlatform

/// The previous backup. Its tables are linked into the new backup if they have the same content.
///
/// Equal names and lengths do not prove equal content: two larders restored from one backup give their new tables the
/// same names. Nor does the list of the previous backup show whether its files were damaged later.
struct PreviousBackup {
    let path: String
    private let list: BackupList

    /// How a table of the previous backup can be used.
    enum Reuse {
        /// It is linked.
        case linked
        /// It has another content.
        case differs
        /// The table cannot be used. If it is damaged, the text describes the damage.
        case useless(String?)
    }

    /// Returns the newest backup of a directory, without backups whose list cannot be read; nil if there is none.
    /// - Parameter note: receives the problems of newer backups.
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

    /// Whether it has a table of a name.
    func has(_ name: String) -> Bool { list.files[name] != nil }

    /// Links a table if its content is the same.
    /// - Parameters:
    ///   - name: the name of a table in the previous backup.
    ///   - source: the path of the new table.
    ///   - file: the content of the new table.
    /// - Throws: if both backups share the file and it has changed since the previous one; and if the system refuses.
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
