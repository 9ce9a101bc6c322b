import Platform

/// A directory of backups of a larder, each in a directory named by its time: `20261123T061500Z`. The names' order is that
/// of the times.
package struct BackupDirectory {
    package let path: String

    package init(_ path: String) { self.path = path }

    /// The names of the complete backups, the oldest first.
    package func names() throws(BackupError) -> [String] {
        do throws(FileError) {
            guard FileSystem.isDirectory(path) else { return [] }
            return try FileSystem.list(path).filter {
                Self.isName($0) && FileSystem.exists(path + "/" + $0 + "/" + BackupList.fileName)
            }
        } catch {
            throw .io("\(error)")
        }
    }

    /// The backup that a path means: itself, or the newest of a directory of them.
    package static func backup(at path: String) throws(BackupError) -> String {
        if FileSystem.exists(path + "/" + BackupList.fileName) { return path }
        guard let newest = try BackupDirectory(path).names().last else {
            throw .noBackup("\(path) is no backup, and no directory of backups")
        }
        return path + "/" + newest
    }

    /// Whether a name is that of a backup: a time, and behind it a number if there were several in a second.
    static func isName(_ name: String) -> Bool {
        let bytes = Array(name.utf8)
        guard bytes.count >= 16, bytes[8] == UInt8(ascii: "T"), bytes[15] == UInt8(ascii: "Z") else { return false }
        let isTime = (Array(0..<8) + Array(9..<15)).allSatisfy { isDigit(bytes[$0]) }
        return isTime
            && (bytes.count == 16 || bytes[16] == UInt8(ascii: "-") && bytes.dropFirst(17).allSatisfy(isDigit))
    }

    private static func isDigit(_ byte: UInt8) -> Bool { byte >= 0x30 && byte <= 0x39 }

    /// Unfinished backups begin with this.
    static let unfinishedPrefix = ".unfinished-"
}
