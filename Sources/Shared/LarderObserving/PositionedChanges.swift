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
        @Sendable (ChangePosition) async throws -> (
            changes: [PositionedChange<Value>], position: ChangePosition
        )?

    private let start: ChangePosition
    private let step: Step

    package init(since start: ChangePosition, _ step: @escaping Step) {
        self.start = start
        self.step = step
    }

    public func makeAsyncIterator() -> Iterator { Iterator(position: start, step: step) }

    /// The iterator of a ``PositionedChanges``.
    public struct Iterator: AsyncIteratorProtocol {
        var position: ChangePosition
        let step: Step
        private var waiting: [PositionedChange<Value>] = []
        private var index = 0

        init(position: ChangePosition, step: @escaping Step) {
            self.position = position
            self.step = step
        }

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
