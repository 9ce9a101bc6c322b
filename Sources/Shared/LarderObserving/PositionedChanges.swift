/// The changes of a database in the order of their commits, after a position: resumable and complete.
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
/// - A change of an entry is reported with its current entry; of several changes of a key, perhaps only the last.
/// - Expiry is not reported, because the entry's ``PositionedChange/deadline`` already was. Evictions are not reported
///   either.
/// - Changes are reported in steps. Up to the last one of a step, ``PositionedChange/position`` is where the step
///   began. A reader that continues there gets some changes again, so applying a change twice must do no harm.
/// - The larder remembers the latest changes, in bounded memory, from the first such sequence until it is closed. A
///   reader that has fallen behind gets ``PositionedChange/Kind/passBegan``, all entries, and
///   ``PositionedChange/Kind/passEnded``.
/// - A sequence has no state in the larder: it may be iterated at any speed, and any number of times, each time from
///   its position.
/// - It ends when its task is cancelled, and when its cache or client is closed.
///
/// Thread-safe.
public struct PositionedChanges<Value: Sendable>: AsyncSequence, Sendable {
    public typealias Element = PositionedChange<Value>

    /// Returns the changes after a position; waits for some. Nil at the end.
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

    /// Takes the changes of a ``PositionedChanges``.
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
