import LarderPlatform

/// The pending changes of a sequence: at most one for each key, up to a maximum number.
///
/// - A change of a key replaces the pending change of the same key, because only the current value matters.
/// - A purge of the whole database replaces all pending changes. A purge of tags keeps its position: changes made after
///   it are reported after it.
/// - If too many changes are pending, all are dropped, and ``CacheChange/Kind/fellBehind`` is reported instead.
package struct PendingChanges: MailboxContent {
    private typealias Place = (number: Int, change: CacheChange)

    private let max: Int
    /// The queue of pending changes, in the order of their numbers. If a key changes again after a purge, its change
    /// gets a new place after the purge; the old place stays in the queue and is skipped.
    private var places = Deque<Place>()
    private var nextNumber = 0
    /// For each key with a pending change, the number of its place and the kind of its newest change.
    private var keys: [[UInt8]: (number: Int, kind: CacheChange.Kind)] = [:]
    /// The number of tags in pending purges.
    private var purgedTags = 0
    /// The number of the place of the last purge of tags; -1 if none is pending.
    private var lastTagPurge = -1
    /// `loss`, `hasFallenBehind` and `isPurged` are returned before the queue; `loss` after it if no changes were lost.
    private var loss: (any Error)?
    private var hasFallenBehind = false
    private var isPurged = false

    /// - Parameter max: the maximum number of keys with pending changes plus purged tags.
    package init(max: Int) { self.max = max }

    /// The number of pending changes.
    package var count: Int { keys.count + purgedTags }

    // MARK: Adding

    package mutating func add(_ kind: CacheChange.Kind, key: [UInt8]) {
        if let present = keys[key] {
            if present.number > lastTagPurge {
                keys[key]?.kind = kind
                return
            }
            keys[key] = nil
        }
        guard hasRoom(1) else { return }
        keys[key] = (nextNumber, kind)
        append(CacheChange(kind, keyBytes: key))
    }

    package mutating func purge() {
        drop()
        isPurged = true
    }

    package mutating func purge(tags: [[UInt8]]) {
        // Ignore a purge without tags: as a change, it would mean that the whole database was emptied.
        guard !tags.isEmpty, hasRoom(tags.count) else { return }
        purgedTags += tags.count
        lastTagPurge = nextNumber
        append(CacheChange(.purged, tags: tags))
    }

    /// Records that changes were lost, so that any entry may have changed. Drops the pending changes.
    package mutating func fallBehind() {
        drop()
        hasFallenBehind = true
    }

    /// Records the loss of the connection. The error is thrown once after the pending changes.
    package mutating func lose(_ error: any Error) { loss = error }

    private mutating func append(_ change: CacheChange) {
        places.append((nextNumber, change))
        nextNumber += 1
        guard places.count > 64, places.count > 4 * count else { return }
        places.removeAll { [keys] in !Self.isCurrent($0, keys) }
    }

    /// Whether the place contains the current change of its key.
    private static func isCurrent(_ place: Place, _ keys: [[UInt8]: (number: Int, kind: CacheChange.Kind)]) -> Bool {
        place.change.keyBytes.map { keys[$0]?.number == place.number } ?? true
    }

    /// Returns whether `more` keys or tags fit. If not, drops all pending changes and records a gap.
    private mutating func hasRoom(_ more: Int) -> Bool {
        if count + more <= max { return true }
        fallBehind()
        return false
    }

    private mutating func drop() { (places, keys, purgedTags, lastTagPurge, isPurged) = (Deque(), [:], 0, -1, false) }

    // MARK: Taking

    package mutating func take() -> Result<CacheChange?, any Error>? {
        if let error = loss, hasFallenBehind || count == 0 && !isPurged {
            loss = nil
            return .failure(error)
        }
        if hasFallenBehind {
            hasFallenBehind = false
            return .success(CacheChange(.fellBehind))
        }
        if isPurged {
            isPurged = false
            return .success(CacheChange(.purged))
        }
        while let place = places.popFirst() {
            guard Self.isCurrent(place, keys) else { continue }
            guard let key = place.change.keyBytes else {
                purgedTags -= place.change.tags.count
                return .success(place.change)
            }
            return .success(CacheChange(keys.removeValue(forKey: key)?.kind ?? place.change.kind, keyBytes: key))
        }
        return nil
    }

    /// The sequence ends at once, without the pending changes.
    package mutating func end() { self = PendingChanges(max: 0) }
}

package typealias ChangeBuffer = Mailbox<PendingChanges>
