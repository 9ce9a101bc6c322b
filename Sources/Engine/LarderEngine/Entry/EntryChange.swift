/// Where a write comes from, and its version. Only subscribers use the client and the kind of command.
package struct WriteOrigin: Hashable, Sendable {
    /// The kind of command.
    package var tag: UInt16
    /// The client's ID; 0 for none.
    package var client: Int64
    /// Whether the change was made in another larder. If so, its version is kept.
    package var isForeign = false
    /// Whether the change is part of a purge.
    package var isPurge = false
    /// The time of the change and, for a change from another larder, its commit sequence number. Each is 0 if unknown.
    package var version = ChangeVersion(time: 0)

    package init(tag: UInt16 = 0, client: Int64 = 0) { (self.tag, self.client) = (tag, client) }
}

/// Identifies a database to the subscribers of changes.
package protocol DatabaseIdentity: AnyObject, Sendable {
    var name: String { get }
}

/// The name of an entry in a larder: a database and a key.
package struct EntryName: Hashable, Sendable {
    package let database: any DatabaseIdentity
    package let key: [UInt8]

    package init(_ database: any DatabaseIdentity, _ key: [UInt8]) { (self.database, self.key) = (database, key) }

    package static func == (left: EntryName, right: EntryName) -> Bool {
        left.database === right.database && left.key == right.key
    }

    package func hash(into hasher: inout Hasher) {
        hasher.combine(ObjectIdentifier(database))
        hasher.combine(key)
    }
}

/// A change of one or more entries of a database: the record of the stream of changes.
package struct EntryChange: Sendable {
    package enum Kind: Sendable {
        // Changes of the entry of ``EntryChange/key``.
        /// The entry was stored, or its lifetime was changed.
        case stored(RecordHeader)
        case removed
        /// The expired entry was removed to reclaim its space. `deadline` is the time of its expiry.
        case swept(RecordHeader, deadline: Int64)
        /// The entry was evicted to stay within a disk limit.
        case evicted
        /// The entry has expired, and the key was not stored again. Only observers of entries get this change.
        case expired
        /// The fetch of the key has ended without a stored value. One of the callers that wait for the key may fetch
        /// it.
        case fetchEnded
        /// The entry may be older than the value of the database's origin, and is not served.
        case outdated

        // Changes of a whole database.
        /// A purge has removed all entries.
        case purged
        /// All entries are gone, for another reason than a purge.
        case emptied
        /// The entries were replaced by unknown ones. Any entry may have changed.
        case replaced
        /// The database was deleted. No change of it follows.
        case deleted
        /// The entries with at least one of these tags were removed or became stale.
        case purgedTags([[UInt8]])
        /// The entries whose keys begin with ``EntryChange/key`` are about to be removed, each as a change of its own.
        case purgedPrefix
        /// The policy has changed, and with it the deadlines of all entries that follow the policy.
        case policyChanged
        /// Any entry may be older than the value of the database's origin.
        case allOutdated
    }

    /// The entry before the change.
    package enum Previous: Sendable, Equatable {
        /// The previous entry was not read.
        case unknown
        /// There was no entry, or it could not be read.
        case absent
        case fresh(DeadlineRule)
    }

    package let database: any DatabaseIdentity
    /// The key of the changed entry; empty for a change of a whole database.
    package var key: [UInt8] = []
    package var kind: Kind
    package var previous = Previous.unknown
    package var origin = WriteOrigin()
    /// When a stored entry expires under the current rules; nil for never.
    package var deadline: Int64?
    /// Whether readers of the entries see no difference. If so, only subscribers that want such changes get it.
    package var isUnseen = false
    /// Whether a removed entry had already expired.
    package var removesExpired = false
    /// The number of the change's commit unit; 0 for a change that is not in the journal, such as an expiry.
    package var sequence: UInt64 = 0

    /// Whether the change concerns exactly one entry.
    package var isOfOneEntry: Bool {
        switch kind {
        case .stored, .removed, .swept, .evicted, .expired, .fetchEnded, .outdated: true
        case .purged, .emptied, .replaced, .deleted, .purgedTags, .purgedPrefix, .policyChanged, .allOutdated: false
        }
    }

    /// Whether the change may concern entries whose keys begin with a prefix.
    func concerns(_ prefix: [UInt8]) -> Bool {
        if isOfOneEntry { return key.starts(with: prefix) }
        return key.starts(with: prefix) || prefix.starts(with: key)
    }
}

extension [EntryChange] {
    /// Puts the changes of one commit unit, which were added database by database, into the order in which they were
    /// made.
    /// - Parameters:
    ///   - first: the index of the unit's first change.
    ///   - steps: for each change, in the order of adding, its position in the unit. The sort is stable.
    mutating func order(from first: Int, by steps: [Int]) {
        // The counts differ if subscribers came or left while the changes were added.
        guard count - first == steps.count else { return }
        let order = steps.indices.sorted { (steps[$0], $0) < (steps[$1], $1) }
        let noted = Array(self[first...])
        for (place, index) in order.enumerated() { self[first + place] = noted[index] }
    }
}

/// The version of a change. Larders that follow each other use versions to order their changes: by time, then by
/// sequence. A change that is passed on keeps its original version.
package struct ChangeVersion: Hashable, Comparable, Sendable, CustomStringConvertible {
    /// When the change was made, by the clock of the larder where it was made, in milliseconds since 1970. If the
    /// change is unknown, the time when the entry was stored.
    package var time: Int64
    /// The commit unit of the change, in the larder where it was made; 0 if unknown.
    package var sequence: UInt64

    package init(time: Int64, sequence: UInt64 = 0) { (self.time, self.sequence) = (time, sequence) }

    /// Parses the format of ``description``: `time-sequence`, or the time alone.
    package init?(_ text: some StringProtocol) {
        let parts = text.split(separator: "-", maxSplits: 1, omittingEmptySubsequences: false)
        guard let first = parts.first, let time = Self.number(first), time <= UInt64(Int64.max) else { return nil }
        var sequence: UInt64 = 0
        if parts.count == 2 {
            guard let number = Self.number(parts[1]) else { return nil }
            sequence = number
        }
        self.init(time: Int64(time), sequence: sequence)
    }

    /// Parses a number that consists only of digits.
    static func number(_ text: some StringProtocol) -> UInt64? {
        guard (1...20).contains(text.utf8.count), text.utf8.allSatisfy({ (0x30...0x39).contains($0) }) else {
            return nil
        }
        return UInt64(text)
    }

    package var description: String { "\(time)-\(sequence)" }

    /// The next higher version, with the same time.
    var next: ChangeVersion { ChangeVersion(time: time, sequence: sequence == .max ? .max : sequence + 1) }

    package static func < (left: ChangeVersion, right: ChangeVersion) -> Bool {
        (left.time, left.sequence) < (right.time, right.sequence)
    }
}
