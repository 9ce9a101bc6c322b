/// The changes of some entries, as they happen, starting with the call that creates the sequence.
///
/// ```swift
/// for try await change in try cache.changes(prefix: "reader:") {
///     print(change.kind, change.key ?? "")
/// }
/// ```
///
/// - Changes of one key arrive in the order of their commits. Pending changes of a key are coalesced.
/// - At most `bufferMax` keys are pending. If there are more, all are dropped, and ``CacheChange/Kind/fellBehind`` is
///   reported instead.
/// - It ends when it is cancelled or released, or when its cache is closed; for a task also when the task is cancelled.
/// - Several tasks may take changes from one sequence: each change goes to one of them.
///
/// Keeps its cache open. Thread-safe.
public final class CacheChanges: AsyncSequence, Sendable {
    public typealias Element = CacheChange

    private let buffer: ChangeBuffer
    private let owner: any Sendable
    private let onCancel: @Sendable (ChangeBuffer) -> Void

    /// - Parameters:
    ///   - owner: kept alive by the sequence.
    ///   - onCancel: stops the flow of changes. Idempotent.
    package init(
        _ buffer: ChangeBuffer, owner: any Sendable, onCancel: @escaping @Sendable (ChangeBuffer) -> Void
    ) {
        self.buffer = buffer
        self.owner = owner
        self.onCancel = onCancel
    }

    deinit { cancel() }

    /// Ends the sequence at once. Idempotent.
    public func cancel() {
        onCancel(buffer)
        buffer.finish()
    }

    var isFinished: Bool { buffer.isFinished }

    public func makeAsyncIterator() -> Iterator { Iterator(changes: self) }

    /// Takes the changes of a ``CacheChanges``.
    public struct Iterator: AsyncIteratorProtocol {
        let changes: CacheChanges

        /// Returns the next change; nil at the end.
        /// - Throws: In the library `LarderError`: `deleted` when the database was deleted, which ends the sequence. In
        ///   the client `LarderClientError`: `closed` when the connection was lost, and `server` if the daemon refuses
        ///   the subscription. After `closed`, the sequence can be iterated again; it then reports
        ///   ``CacheChange/Kind/fellBehind`` once the client has reconnected.
        public mutating func next() async throws -> CacheChange? { try await changes.buffer.next() }
    }
}

/// The changes of some entries, like ``CacheChanges``, each with the newest value of its key.
///
/// The value is read when the change is taken, and only for stored entries. A value that cannot be decoded throws where
/// it is used, and does not end the sequence.
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

    /// Ends the sequence at once. Idempotent.
    public func cancel() { changes.cancel() }

    public func makeAsyncIterator() -> Iterator { Iterator(changes: self) }

    /// Takes the changes of a ``DecodedChanges``.
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
                // The read failed because the sequence ended; report that instead.
                if Task.isCancelled { return nil }
                if changes.changes.isFinished { return try await next() }
                return DecodedChange(change, .failure(error))
            }
        }
    }
}
