/// What a directory holds, as far as its file names and `CURRENT` tell.
package enum FileState: Hashable, Sendable {
    /// No directory, or none of LevelDB's files that could hold data: a database may be made here. Files of others, a
    /// `LOCK`, a `LOG`, or what a creation that was cut short left behind do not count.
    case absentOrEmpty
    /// `CURRENT` names a manifest, and the manifest is there.
    case database
    /// Files with data are there, but `CURRENT` is missing, empty, cut short, or names a manifest that is not there.
    case damaged
}
