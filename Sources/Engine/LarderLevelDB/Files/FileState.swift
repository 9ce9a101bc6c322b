/// Whether a directory contains a database, according to its file names and `CURRENT`.
package enum FileState: Hashable, Sendable {
    /// The directory does not exist, or it has no LevelDB files with data: a database may be created here. Files of
    /// other programs, `LOCK`, `LOG`, and the remains of an interrupted creation may exist.
    case absentOrEmpty
    /// `CURRENT` names a manifest that exists.
    case database
    /// There are files with data, but `CURRENT` is missing, empty or truncated, or names a manifest that does not
    /// exist.
    case damaged
}
