/// The changes of a database in the order of their commits, from a position on: resumable, and complete.
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
/// - A change of an entry is told with the entry that there is now; of several changes of a key, perhaps only the last.
/// - An entry that expires is not told: its ``PositionedChange/deadline`` was. Nor is one that is removed to keep a limit of
///   the disk.
/// - Changes are told in steps. Up to the last one of a step, ``PositionedChange/position`` is where the step began: who goes
///   on there is told some of them again, so taking care of a change twice must do no harm.
/// - The larder remembers the latest changes, in bounded memory, from the first such sequence on, and until it is closed. Who
///   was away for longer is told ``PositionedChange/Kind/passBegan``, all entries, and
///   ``PositionedChange/Kind/passEnded``.
/// - Nothing is kept for a sequence: it may be iterated at any speed, and as often as one likes, each time from its position.
/// - It ends when its task is cancelled, and when its cache or client is closed.
///
/// Thread-safe.
public struct PositionedChanges<Value: Sendable>: AsyncSequence, Sendable {
    public typealias Element = PositionedChange<Value>

    /// The changes behind a position; waits for some. Nil at the end.
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

        /// The next change; nil at the end.
        /// - Throws: in the library `LarderError`: `deleted`, or what reading the database throws; in the client
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
