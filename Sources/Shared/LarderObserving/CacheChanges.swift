import LarderVocabulary

/// A sequence of the changes of some entries since the call that created the sequence.
///
/// ```swift
/// for try await change in try cache.changes(prefix: "reader:") {
///     print(change.kind, change.key ?? "")
/// }
/// ```
///
/// - Changes of one key arrive in the order of their commits. Pending changes of a key are coalesced.
/// - At most `bufferMax` keys can have pending changes. If more keys have pending changes, all pending changes are
///   dropped, and ``CacheChange/Kind/fellBehind`` is reported instead.
/// - The sequence ends when it is cancelled or released, or its cache is closed. A cancelled task immediately gets nil.
/// - Several tasks may iterate over one sequence. Each change is then returned to only one of them.
///
/// The sequence keeps its cache open. Thread-safe.
public final class CacheChanges: AsyncSequence, Sendable {
    public typealias Element = CacheChange

    private let buffer: ChangeBuffer
    private let owner: any Sendable
    private let onCancel: @Sendable (ChangeBuffer) -> Void

    /// - Parameters:
    ///   - owner: an object that the sequence retains.
    ///   - onCancel: stops the delivery of changes to the buffer. May be called repeatedly.
    package init(
        _ buffer: ChangeBuffer, owner: any Sendable, onCancel: @escaping @Sendable (ChangeBuffer) -> Void
    ) { (self.buffer, self.owner, self.onCancel) = (buffer, owner, onCancel) }

    deinit { cancel() }

    /// Ends the sequence immediately, without returning pending changes. May be called repeatedly.
    public func cancel() {
        onCancel(buffer)
        buffer.finish()
    }

    var isFinished: Bool { buffer.isFinished }

    public func makeAsyncIterator() -> Iterator { Iterator(changes: self) }

    /// The iterator of a ``CacheChanges``.
    public struct Iterator: AsyncIteratorProtocol {
        let changes: CacheChanges

        /// Returns the next change; nil at the end.
        /// - Throws: In the library `LarderError`: `deleted` when the database was deleted, which ends the sequence. In
        ///   the client `LarderClientError`: `closed` when the connection was lost, and `server` if the daemon rejects
        ///   the subscription. After `closed` you can call this function again. It then waits until the client has
        ///   reconnected, and returns ``CacheChange/Kind/fellBehind``.
        public mutating func next() async throws -> CacheChange? { try await changes.buffer.next() }
    }
}

/// A sequence of changes like ``CacheChanges``, each with the current value of its key.
///
/// The iterator reads the value when it returns a change, and only for stored entries. If the value cannot be read or
/// decoded, ``DecodedChange/value`` throws, and the sequence continues.
///
/// Thread-safe.
public struct DecodedChanges<Value: Sendable>: AsyncSequence, Sendable {
    public typealias Element = DecodedChange<Value>

    private let changes: CacheChanges
    private let read: @Sendable ([UInt8]) async throws -> Value?

    package init(_ changes: CacheChanges, _ read: @escaping @Sendable ([UInt8]) async throws -> Value?) {
        (self.changes, self.read) = (changes, read)
    }

    /// Ends the sequence immediately, without returning pending changes. May be called repeatedly.
    public func cancel() { changes.cancel() }

    public func makeAsyncIterator() -> Iterator { Iterator(changes: self) }

    /// The iterator of a ``DecodedChanges``.
    public struct Iterator: AsyncIteratorProtocol {
        let changes: DecodedChanges

        /// Returns the next change with its value; nil at the end.
        /// - Throws: as `CacheChanges.Iterator.next()`.
        public mutating func next() async throws -> DecodedChange<Value>? {
            var iterator = changes.changes.makeAsyncIterator()
            guard let change = try await iterator.next() else { return nil }
            guard change.kind == .stored, let key = change.keyBytes else { return DecodedChange(change, .success(nil)) }
            do {
                return DecodedChange(change, .success(try await changes.read(key)))
            } catch {
                // The read may have failed because the sequence has ended. If so, report the end instead.
                if Task.isCancelled { return nil }
                if changes.changes.isFinished { return try await next() }
                return DecodedChange(change, .failure(error))
            }
        }
    }
}

/// A change of one or more entries, as reported by `changes()` of the library's `Cache` and the client's `RemoteCache`.
///
/// It contains the key, but not the value. Several pending changes of a key become one. A read after this change was
/// received returns the changed entry or a newer one. Thread-safe: a value.
public struct CacheChange: Hashable, Sendable {
    /// The kind of a change.
    public enum Kind: String, Hashable, Sendable, CaseIterable {
        /// An entry was stored, or its lifetime was changed.
        case stored
        /// An entry was removed.
        case removed
        /// An entry was evicted because of the disk limit.
        case evicted
        /// An entry has expired, and no new entry was stored under its key.
        case expired
        /// Many entries were removed. Without ``CacheChange/tags``: all entries of the database. With tags: all entries
        /// with one of these tags (which may also have been made stale instead). The keys are not reported.
        case purged
        /// Changes were lost, because too many were pending or the connection was lost. Any entry may have changed, so
        /// read all entries again. Later changes are reported as usual.
        case fellBehind
    }

    /// The kind of the change.
    public let kind: Kind
    /// The bytes of the key; nil for ``Kind/purged`` and ``Kind/fellBehind``, which concern several keys.
    public let keyBytes: [UInt8]?
    /// The purged tags if ``kind`` is ``Kind/purged``. Empty if the whole database was emptied, and for other kinds.
    public let tags: [[UInt8]]

    /// The key as text. Bytes that are not UTF-8 appear as U+FFFD; use ``keyBytes`` for such keys.
    public var key: String? { keyBytes.map { String(decoding: $0, as: UTF8.self) } }

    /// Creates a change, for tests of programs that process changes.
    public init(_ kind: Kind, keyBytes: [UInt8]? = nil, tags: [[UInt8]] = []) {
        (self.kind, self.keyBytes, self.tags) = (kind, keyBytes, tags)
    }
}

extension CacheChange: CustomStringConvertible {
    /// A description such as `stored reader:1`.
    public var description: String {
        let names = (keyBytes.map { [$0] } ?? tags).map { printableKey($0) }
        return ([kind.rawValue] + names).joined(separator: " ")
    }
}

/// A change, and the key's value when the change was returned: see ``DecodedChanges``. Thread-safe: a value.
public struct DecodedChange<Value: Sendable>: Sendable {
    /// The change without the value.
    public let change: CacheChange
    private let result: Result<Value?, any Error>

    package init(_ change: CacheChange, _ result: Result<Value?, any Error>) {
        (self.change, self.result) = (change, result)
    }

    /// The kind of the change.
    public var kind: CacheChange.Kind { change.kind }
    /// The key as text: see ``CacheChange/key``.
    public var key: String? { change.key }

    /// The key's value when the iterator returned this change. Nil if the change is not ``CacheChange/Kind/stored``, or
    /// if the entry has been removed meanwhile; a later change then reports the removal.
    /// - Throws: the errors of the cache's `value(forKey:)`, for example if the value has another type. The sequence
    ///   continues nevertheless.
    public var value: Value? {
        get throws { try result.get() }
    }
}
