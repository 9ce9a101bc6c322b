/// The outcome of applying a change from another larder.
package enum FollowedChange: String, Sendable {
    case stored
    case removed
    /// The present version is later or equal, and stays.
    case kept
    /// The entry has expired, so it is not stored; the present entry is removed.
    case expired
    /// There was nothing to remove.
    case absent
}

/// Applies changes from other larders. Of two changes of a key, the one with the later ``ChangeVersion`` wins. The
/// present state has the version of the key's last change, if the change log still contains it. Otherwise its version
/// is the storage time of the entry, which is later than the last purge: a purge removes older entries.
///
/// If two versions are equal, a removal wins over an entry, and the greater of two entries wins. This rule makes both
/// larders keep the same state.
extension Update {
    /// Stores an entry of another larder, unless the present version is later.
    /// - Parameters:
    ///   - over: a time in milliseconds since 1970; nil for none. A present entry whose last change is not after this
    ///     time is always replaced, because the other larder knew that change.
    ///   - long: as for ``place(_:_:payload:long:tags:)``.
    package func follow(
        _ index: Int, _ header: RecordHeader, payload: UnsafeRawBufferPointer, long: LargeValue?, tags: Tags?,
        _ version: ChangeVersion, over: Int64?
    ) -> FollowedChange {
        let known = known(index)
        if isBeingChanged(index) { return .kept }
        let present = freshOrStale(index)
        var taken = rules.taking(header)
        taken.generation = generation
        if let present, present.isSame(taken, payload, tags) { return .kept }
        let age = present.map { ChangeVersion(time: $0.header.storedAt) }
        let entry = age.map { max($0, known.change ?? $0) }
        if let last = [entry, known.change, known.purge].compactMap(\.self).max(), version <= last {
            guard let present else { return .kept }
            let givesWay = over.map { last.time <= $0 } ?? false
            let isTie = version == entry && version != known.purge
            guard givesWay || isTie && present.isLess(than: taken, payload, tags) else { return .kept }
        }
        return withVersion(version) {
            if place(index, header, payload: payload, long: long, tags: tags) { return .stored }
            removeStored(index)
            return .expired
        }
    }

    /// Removes an entry that another larder has removed, unless the present version is later.
    /// - Parameter tags: removes the entry only if it has at least one of these tags; nil for any entry.
    package func follow(removal version: ChangeVersion, _ index: Int, tags: Set<[UInt8]>?) -> FollowedChange {
        let known = known(index)
        if isBeingChanged(index) { return .kept }
        guard let present = stored(index) else {
            // A running fetch may have read the value before the removal.
            endLease(index)
            if tags == nil, isEvictedElsewhere { passOn(removal: version, index, known) }
            return .absent
        }
        if let tags, tags.isDisjoint(with: present.tags?.all ?? []) { return .absent }
        let age = ChangeVersion(time: present.header.storedAt)
        let last = max(known.change ?? known.finishedPurge?.next ?? age, age)
        guard version >= last else { return .kept }
        return withVersion(version) {
            remove(index)
            return .removed
        }
    }

    private func known(_ index: Int) -> KnownVersions {
        database.context.changeLog.known(of: Array(key(index).bytes), in: database)
    }

    /// Whether a change of the key at `index` still waits for its commit, although the update has waited several times.
    /// When committed, that change gets a later version than the change from the other larder.
    private func isBeingChanged(_ index: Int) -> Bool { observes && isFollowed && database.isUndecided(key(index)) }

    /// Commits a removal, because the journal or followers may have entries that were evicted here. Does nothing if the
    /// removal is already known. So a removal that returns through a cycle of larders is not passed on again.
    private func passOn(removal version: ChangeVersion, _ index: Int, _ known: KnownVersions) {
        guard known.last.map({ version > $0 }) ?? true else { return }
        _ = withVersion(version) {
            removeAbsent(index)
            return .absent
        }
    }

    private func withVersion(_ version: ChangeVersion, _ body: () -> FollowedChange) -> FollowedChange {
        let previous = origin
        (origin.version, origin.isForeign) = (version, true)
        defer { origin = previous }
        return body()
    }
}

extension Record {
    /// Whether this record equals an entry to be stored, apart from the generation.
    fileprivate func isSame(_ other: RecordHeader, _ payload: UnsafeRawBufferPointer, _ tags: Tags?) -> Bool {
        header.storedAt == other.storedAt && header.rule == other.rule && header.grace == other.grace
            && header.codec == other.codec && (self.tags?.all ?? []) == (tags?.all ?? [])
            && withPayload { $0.elementsEqual(payload) }
    }

    /// Whether this record precedes an entry to be stored. The order is arbitrary, but the same in every larder.
    fileprivate func isLess(than other: RecordHeader, _ payload: UnsafeRawBufferPointer, _ tags: Tags?) -> Bool {
        withPayload { mine in
            if !mine.elementsEqual(payload) { return mine.lexicographicallyPrecedes(payload) }
            let (left, right) = (header, other)
            if left.rule != right.rule { return left.rule.rank < right.rule.rank }
            if left.storedAt != right.storedAt { return left.storedAt < right.storedAt }
            if left.grace != right.grace { return left.grace ?? -1 < right.grace ?? -1 }
            if left.codec != right.codec { return left.codec.rawValue < right.codec.rawValue }
            let (own, others) = (self.tags?.all ?? [], tags?.all ?? [])
            return own.lexicographicallyPrecedes(others) { $0.lexicographicallyPrecedes($1) }
        }
    }
}

extension DeadlineRule {
    fileprivate var rank: (Int, Int64) {
        switch self {
        case .governed: (0, 0)
        case .own(let deadline): (1, deadline)
        case .ownNever: (2, 0)
        }
    }
}
