import LarderEngine
import LarderQueries

/// The changes of a database that were not applied to its live queries yet: at most one for each key.
struct NotedChanges {
    struct Note {
        var reason: LiveReason
        /// Whether the entry may have another text.
        var isStored: Bool
    }

    private(set) var keys: [Key: Note] = [:]
    /// Why any row may be gone; nil if none is for such a reason.
    private(set) var recheck: LiveReason?
    private(set) var hasOtherPolicy = false
    /// Whether any entry may have changed.
    private(set) var isUnknown = false
    private(set) var isDeleted = false
    /// The last commit unit with a noted change; 0 if there is none.
    private(set) var last: UInt64 = 0

    /// If more keys have changed, the queries run again.
    private static let keysMax = 65_536
    private static let reservedMax = 256

    /// - Parameter count: the expected number of keys.
    init(reserving count: Int = 0) { keys.reserveCapacity(min(count, Self.reservedMax)) }

    var isEmpty: Bool { keys.isEmpty && !isWide }
    /// Whether a change concerns the whole database.
    var isWide: Bool { recheck != nil || isUnknown || isDeleted }

    mutating func note(_ change: EntryChange) {
        last = max(last, change.sequence)
        switch change.kind {
        case .stored: note(change.key, .changed, isStored: true)
        case .removed:
            let reason: LiveReason = change.origin.isPurge ? .purged : change.removesExpired ? .expired : .removed
            note(change.key, reason, isStored: false)
        case .swept, .expired: note(change.key, .expired, isStored: false)
        case .evicted: note(change.key, .evicted, isStored: false)
        case .purged, .emptied, .purgedTags: recheck = .purged
        case .policyChanged:
            hasOtherPolicy = true
            recheck = recheck ?? .expired
        case .replaced: forgetKeys()
        case .deleted:
            recheck = .purged
            isDeleted = true
        // Outdated entries are not served to clients of an origin's database, but queries find them.
        case .fetchEnded, .outdated, .allOutdated, .purgedPrefix: break
        }
    }

    private mutating func note(_ key: [UInt8], _ reason: LiveReason, isStored: Bool) {
        guard !isUnknown else { return }
        let key = Key(key)
        if let old = keys.updateValue(Note(reason: reason, isStored: isStored), forKey: key) {
            if old.isStored { keys[key]?.isStored = true }
        } else if keys.count > Self.keysMax {
            forgetKeys()
        }
    }

    mutating func forgetKeys() { (keys, isUnknown) = ([:], true) }

    mutating func merge(_ other: NotedChanges) {
        for (key, note) in other.keys {
            let isStored = note.isStored || keys[key]?.isStored ?? false
            keys[key] = NotedChanges.Note(reason: keys[key]?.reason ?? note.reason, isStored: isStored)
        }
        recheck = recheck ?? other.recheck
        hasOtherPolicy = hasOtherPolicy || other.hasOtherPolicy
        isDeleted = isDeleted || other.isDeleted
        last = max(last, other.last)
    }
}
