/// An error of a backup, or of the directory for it.
package enum BackupError: Error, CustomStringConvertible, Equatable {
    /// There is no backup.
    case noBackup(String)
    /// Something in the backup differs from what was written.
    case damaged(String)
    case newerFormat(String)
    /// The place for it cannot be used.
    case place(String)
    /// The system refused.
    case io(String)

    package var description: String {
        switch self {
        case .noBackup(let text), .damaged(let text), .newerFormat(let text), .place(let text), .io(let text): text
        }
    }
}

/// The progress of long work.
package struct BackupProgress: Sendable {
    package var doneBytes = 0
    package let totalBytes: Int

    package init(totalBytes: Int) { self.totalBytes = totalBytes }
}
