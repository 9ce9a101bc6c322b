import LarderVocabulary

/// A sequence of all changes of a database after a position, in the order of their commits. A reader can stop, and
/// later continue at the last position without missing a change.
///
/// ```swift
/// var position = try load() ?? .beginning
/// for try await change in try cache.changes(since: position) {
///     try apply(change)
///     position = change.position
///     try save(position)
/// }
/// ```
///
/// - A change is reported with the entry's current state, not its state at the time of the change. If a key changes
///   several times, the earlier changes may be left out.
/// - Evictions are not reported. Nor is expiry, because ``PositionedChange/deadline`` was reported with the entry.
/// - Changes are read in batches. ``PositionedChange/position`` is the start of the batch, except for the last change
///   of a batch. So a reader that continues may get some changes again: applying a change twice must do no harm.
/// - From the first such sequence until the larder is closed, the larder remembers the latest changes in a limited
///   amount of memory. If the changes after a reader's position are no longer remembered, the reader gets
///   ``PositionedChange/Kind/passBegan``, all entries, and ``PositionedChange/Kind/passEnded``.
/// - A sequence has no state in the larder, so a slow reader costs nothing. A sequence may be iterated several times.
/// - The sequence ends when its task is cancelled, or when its cache or client is closed.
///
/// Thread-safe.
public struct PositionedChanges<Value: Sendable>: AsyncSequence, Sendable {
    public typealias Element = PositionedChange<Value>

    /// Waits for changes after a position. Returns a batch, and the position after the batch; nil at the end.
    package typealias Step =
        @Sendable (ChangePosition) async throws -> (changes: [PositionedChange<Value>], position: ChangePosition)?

    private let start: ChangePosition
    private let step: Step

    package init(since start: ChangePosition, _ step: @escaping Step) { (self.start, self.step) = (start, step) }

    public func makeAsyncIterator() -> Iterator { Iterator(position: start, step: step) }

    /// The iterator of a ``PositionedChanges``.
    public struct Iterator: AsyncIteratorProtocol {
        var position: ChangePosition
        let step: Step
        private var waiting: [PositionedChange<Value>] = []
        private var index = 0

        init(position: ChangePosition, step: @escaping Step) { (self.position, self.step) = (position, step) }

        /// Returns the next change; nil at the end.
        /// - Throws: In the library `LarderError`: `deleted`, or the errors of reading the database. In the client
        ///   `LarderClientError`. The next call tries again.
        public mutating func next() async throws -> PositionedChange<Value>? {
            while index == waiting.count {
                guard !Task.isCancelled, let next = try await step(position) else { return nil }
                (waiting, index, position) = (next.changes, 0, next.position)
            }
            defer { index += 1 }
            return waiting[index]
        }
    }
}

/// A change, and the position from which to continue after the change: see ``PositionedChanges``. Thread-safe: a value.
public struct PositionedChange<Value: Sendable>: Sendable {
    /// The kind of a change.
    public enum Kind: String, Hashable, Sendable, CaseIterable {
        /// The entry was stored, or its lifetime was changed.
        case stored
        /// The entry was removed.
        case removed
        /// Many entries were removed. With ``PositionedChange/tags``: all entries with one of these tags (which may
        /// also have been made stale instead). With ``PositionedChange/prefixBytes``: all entries whose keys have this
        /// prefix. Without tags and prefix: all entries of the database.
        case purged
        /// A full pass begins: all entries are reported, in no particular order, with changes made meanwhile. Happens
        /// for ``ChangePosition/beginning``, and if the changes after the position are no longer remembered.
        case passBegan
        /// The full pass is complete. Entries that were not reported since the last ``passBegan`` no longer exist.
        case passEnded
    }

    /// The kind of the change.
    public let kind: Kind
    /// The bytes of the key; nil for a change of more than one entry.
    public let keyBytes: [UInt8]?
    /// The tags of a stored entry, or the purged tags.
    public let tags: [[UInt8]]
    /// The prefix of the purged keys; nil for other changes, and for purges without a prefix.
    public let prefixBytes: [UInt8]?
    /// When a stored entry was stored, in milliseconds since 1970; nil for other changes.
    public let storedAt: Int64?
    /// When a stored entry expires, in milliseconds since 1970; nil for never, and for other changes.
    public let deadline: Int64?
    /// The position from which to continue after this change was processed.
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
    /// - Throws: if the value cannot be decoded as this type. The sequence continues nevertheless.
    public var value: Value? {
        get throws { try result.get() }
    }
}

extension PositionedChange {
    /// Returns the elements for one step of a feed.
    /// - Parameters:
    ///   - previous: the position before the step, from which a reader continues that did not process the whole step.
    ///   - end: the position after the step.
    ///   - stored: returns the element for an entry.
    package static func elements<Entry>(
        for changes: [FeedChange<Entry>], since previous: ChangePosition, upTo end: ChangePosition, beginsPass: Bool,
        endsPass: Bool, stored: (Entry, ChangePosition) -> PositionedChange
    ) -> [PositionedChange] {
        var elements = beginsPass ? [PositionedChange(.passBegan, position: previous)] : []
        for (index, change) in changes.enumerated() {
            let position = index + 1 == changes.count && !endsPass ? end : previous
            let element =
                switch change {
                case .stored(let entry): stored(entry, position)
                case .removed(let key): PositionedChange(.removed, keyBytes: key, position: position)
                case .purged: PositionedChange(.purged, position: position)
                case .purgedPrefix(let prefix): PositionedChange(.purged, prefixBytes: prefix, position: position)
                case .purgedTags(let tags): PositionedChange(.purged, tags: tags, position: position)
                }
            elements.append(element)
        }
        return endsPass ? elements + [PositionedChange(.passEnded, position: end)] : elements
    }
}

/// A position in the sequence of a database's changes: see ``PositionedChanges``. It can be stored as text, and used
/// later to continue there, also in another process. Thread-safe: a value.
public struct ChangePosition: Hashable, Sendable, CustomStringConvertible {
    /// The position as text without spaces.
    public let description: String

    /// The position before all changes: all existing entries are reported first.
    public static let beginning = ChangePosition("0")
    /// The current position: only later changes are reported.
    public static let now = ChangePosition("$")

    /// - Parameter text: the ``description`` of a position. If it is invalid, the call that uses the position throws.
    public init(_ text: String) { description = text }
}

extension ChangePosition: Codable {
    public init(from decoder: any Decoder) throws { self.init(try decoder.singleValueContainer().decode(String.self)) }

    public func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(description)
    }
}
