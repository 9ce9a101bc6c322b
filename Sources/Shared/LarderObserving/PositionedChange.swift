/// A change with the place to go on behind it: see ``PositionedChanges``. A value.
public struct PositionedChange<Value: Sendable>: Sendable {
    /// What happened.
    public enum Kind: String, Hashable, Sendable, CaseIterable {
        /// There is another entry under the key than before, or it has another lifetime.
        case stored
        /// There is no entry under the key any more.
        case removed
        /// With ``PositionedChange/tags``: all entries with one of them are gone, or stale. With
        /// ``PositionedChange/prefixBytes``: all entries whose keys begin with them are gone. Without both: the database
        /// was emptied.
        case purged
        /// The changes behind the position are not known any more, or the beginning was asked for: all entries follow, in
        /// no special order with what changes meanwhile.
        case passBegan
        /// All entries were told since the last ``passBegan``. What was stored by an earlier change and was not told since
        /// is gone.
        case passEnded
    }

    /// What happened.
    public let kind: Kind
    /// The bytes of the key; nil for what is about more than one.
    public let keyBytes: [UInt8]?
    /// Of a stored entry, or those that were purged.
    public let tags: [[UInt8]]
    /// With what the keys of purged entries begin; nil for other changes, and if that did not matter.
    public let prefixBytes: [UInt8]?
    /// When a stored entry was stored, in milliseconds since 1970; nil for other changes.
    public let storedAt: Int64?
    /// When a stored entry expires, in milliseconds since 1970; nil for never, and for other changes.
    public let deadline: Int64?
    /// Where to go on when this change has been taken care of.
    public let position: ChangePosition
    private let result: Result<Value?, any Error>

    package init(
        _ kind: Kind, keyBytes: [UInt8]? = nil, tags: [[UInt8]] = [], prefixBytes: [UInt8]? = nil,
        storedAt: Int64? = nil, deadline: Int64? = nil, position: ChangePosition,
        _ result: Result<Value?, any Error> = .success(nil)
    ) {
        self.kind = kind
        self.keyBytes = keyBytes
        self.tags = tags
        self.prefixBytes = prefixBytes
        self.storedAt = storedAt
        self.deadline = deadline
        self.position = position
        self.result = result
    }

    /// The key as text. Bytes that are not UTF-8 appear as U+FFFD; use ``keyBytes`` for such keys.
    public var key: String? { keyBytes.map { String(decoding: $0, as: UTF8.self) } }

    /// The value of a stored entry; nil for other changes.
    /// - Throws: for a value of another type. The sequence goes on.
    public var value: Value? {
        get throws { try result.get() }
    }
}
