/// The entries that a purge removes.
package enum PurgeSelection: Sendable {
    /// All entries, at once and whatever their number.
    /// - Parameter counting: whether the report has the number of entries, which requires reading all of them.
    case all(counting: Bool)
    /// The entries whose keys have the prefix, even unreadable ones, in commit units of at most 512. All entries stored
    /// before the call are removed, and stay so after a machine failure. Entries stored during the call are kept.
    case prefix([UInt8])
    /// The entries with one of these tags, at once and durably, for an fsync. A value that is being fetched under an
    /// earlier lease is not stored if it has one of the tags.
    /// - Parameter soft: whether the entries become stale for their grace, instead of being removed.
    case tags([[UInt8]], soft: Bool)
    /// The entries that have expired, in commit units of at most 512. Reads all entries, and frees the space.
    /// - Parameter merges: whether to wait until LevelDB has compacted the files. This may take seconds, because one
    ///   thread compacts the files of all databases, and their checkpoints come first. If false, LevelDB compacts the
    ///   files in the background.
    case expired(merges: Bool)
    /// The entries not changed after a version, because another larder has purged them. Reads all entries, except for a
    /// purge of tags without a prefix in a database without followers, which is an ordinary purge of the tags.
    /// - Parameters:
    ///   - prefix: only keys with this prefix.
    ///   - tags: nil for all entries.
    case upTo(ChangeVersion, prefix: [UInt8], tags: [[UInt8]]?)
}

extension Database {
    /// Removes entries. May block.
    /// - Returns: what was removed; without the number of entries if they were not counted.
    /// - Throws: `invalidArgument` for an invalid tag. After an error of a purge of all entries or of tags, nothing has
    ///   changed.
    @discardableResult
    package func purge(_ selection: PurgeSelection = .all(counting: true)) throws(LarderError) -> PurgeReport {
        switch selection {
        case .all(let counting): return try purgeAll(counting: counting)
        case .prefix(let prefix): return try RemovalPass.purge(prefix: prefix, of: self)
        case .expired(let merges): return try RemovalPass.purgeExpired(of: self, merges: merges)
        case .upTo(let version, let prefix, let tags):
            if let tags, prefix.isEmpty, !context.changeLog.isFollowed(self) {
                return try purge(.tags(tags, soft: false))
            }
            return try RemovalPass.purge(upTo: version, prefix: prefix, tags: tags.map { Set($0) }, of: self)
        case .tags(let tags, let soft):
            try tagPurges.purge(tags, soft: soft)
            return PurgeReport(entries: nil)
        }
    }
}
