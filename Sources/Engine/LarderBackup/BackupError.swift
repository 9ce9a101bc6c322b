/// An error while making, checking or restoring a backup. Each case has a message for people.
package enum BackupError: Error, CustomStringConvertible, Equatable {
    /// There is no backup.
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
