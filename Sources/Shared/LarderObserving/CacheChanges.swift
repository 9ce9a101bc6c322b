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
    ) {
        self.buffer = buffer
        self.owner = owner
        self.onCancel = onCancel
    }

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
        self.changes = changes
        self.read = read
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
            guard change.kind == .stored, let key = change.keyBytes else {
                return DecodedChange(change, .success(nil))
            }
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
