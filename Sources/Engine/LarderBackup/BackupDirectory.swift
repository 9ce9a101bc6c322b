import LarderPlatform

/// A directory of backups of a larder. Each backup is a subdirectory named after its time, such as `20261123T061500Z`,
/// so the names sort by time.
package struct BackupDirectory {
    package let path: String

    package init(_ path: String) { self.path = path }

    /// The names of the backups, the oldest first, including damaged ones.
    package func names() throws(BackupError) -> [String] {
        try takenNames().filter { FileSystem.isDirectory(path + "/" + $0) }
    }

    /// Returns all names in the directory that have the form of a backup's name, including those of files and links.
    func takenNames() throws(BackupError) -> [String] {
        do throws(FileError) {
            guard FileSystem.isDirectory(path) else { return [] }
            return try FileSystem.list(path).filter(Self.isName)
        } catch {
            throw .io("\(error)")
        }
    }

    /// Returns the path of the backup to use: `path` itself if it is a backup, otherwise the newest backup in it.
    /// - Throws: `.noBackup` if there is no backup; `.damaged` if that backup's list of files is missing, even if there
    ///   is an older backup.
    package static func backup(at path: String) throws(BackupError) -> String {
        if try hasList(path) { return path }
        if isName(path.split(separator: "/").last.map(String.init) ?? ""), FileSystem.isDirectory(path) {
            throw .damaged(noList(path))
        }
        let names = try BackupDirectory(path).names()
        guard let newest = names.last else { throw .noBackup("\(path) is neither a backup nor a directory of backups") }
        if try hasList(path + "/" + newest) { return path + "/" + newest }
        for name in names.reversed() where try hasList(path + "/" + name) {
            throw .damaged(noList(path + "/" + newest) + "; to use the previous one, specify \(path)/\(name)")
        }
        throw .damaged(noList(path + "/" + newest))
    }

    private static func hasList(_ path: String) throws(BackupError) -> Bool {
        do throws(FileError) {
            return try FileSystem.linkStatus(path + "/" + BackupList.fileName) != nil
        } catch {
            throw .io("\(error)")
        }
    }

    private static func noList(_ path: String) -> String {
        "\(path) is damaged: its file \(BackupList.fileName) is missing"
    }

    /// Whether a name has the form of a backup's name: a time, followed by `-` and a number if there were several
    /// backups in the same second.
    static func isName(_ name: String) -> Bool {
        let bytes = Array(name.utf8)
        guard bytes.count >= 16, bytes[8] == UInt8(ascii: "T"), bytes[15] == UInt8(ascii: "Z") else { return false }
        let isTime = (Array(0..<8) + Array(9..<15)).allSatisfy { isDigit(bytes[$0]) }
        return isTime
            && (bytes.count == 16 || bytes[16] == UInt8(ascii: "-") && bytes.dropFirst(17).allSatisfy(isDigit))
    }

    private static func isDigit(_ byte: UInt8) -> Bool { byte >= 0x30 && byte <= 0x39 }

    /// The prefix of the names of unfinished backups.
    static let unfinishedPrefix = ".unfinished-"
    /// The prefix of the names of larders that are being restored.
    static let restoringPrefix = ".restoring-"
    /// The name of the lock file, which exists and is locked while a backup is being made.
    static let lockName = ".lock"
}

/// An error while making, checking or restoring a backup. Each case has a message for people.
package enum BackupError: Error, CustomStringConvertible, Equatable {
    case noBackup(String)
    /// The backup, or the larder that is backed up, is damaged.
    case damaged(String)
    case newerFormat(String)
    /// The directory of the backup or of the restored larder cannot be used, for example because it is locked.
    case place(String)
    /// The operating system reported an error.
    case io(String)

    package var description: String {
        switch self {
        case .noBackup(let text), .damaged(let text), .newerFormat(let text), .place(let text), .io(let text): text
        }
    }
}
