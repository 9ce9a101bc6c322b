/// The content of a directory, according to its file names and `CURRENT`.
package enum FileState: Hashable, Sendable {
    /// There is no directory, or it has no LevelDB files with data: a database may be created here. Files of other
    /// programs, a `LOCK`, a `LOG`, and the remains of an interrupted creation are ignored.
    case absentOrEmpty
    /// `CURRENT` names a manifest that exists.
    case database
    /// There are files with data, but `CURRENT` is missing, empty or truncated, or names a manifest that does not
    /// exist.
    case damaged
}
