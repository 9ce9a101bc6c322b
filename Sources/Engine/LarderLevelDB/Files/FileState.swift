/// The content of a directory, according to its file names and `CURRENT`.
package enum FileState: Hashable, Sendable {
    /// No directory, or no LevelDB files with data: a database may be created here. Foreign files, a `LOCK`, a `LOG`,
    /// and the rest of an interrupted creation are ignored.
    case absentOrEmpty
    /// `CURRENT` names a manifest that exists.
    case database
    /// There are files with data, but `CURRENT` is missing, empty, cut short, or names a manifest that does not exist.
    case damaged
}
