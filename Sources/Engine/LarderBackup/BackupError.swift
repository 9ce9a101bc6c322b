/// What is wrong with a backup, or with the place for one.
package enum BackupError: Error, CustomStringConvertible, Equatable {
    /// There is none.
    case noBackup(String)
    /// Something in it is not as it was written.
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

/// How far long work has come.
package struct BackupProgress: Sendable {
    package var doneBytes = 0
    package let totalBytes: Int

    package init(totalBytes: Int) { self.totalBytes = totalBytes }
}
