import LarderPlatform
import LarderQueries

@_exported import enum LarderQueries.LiveReason

/// A running live query, as its reader controls it.
package struct LiveFeed: Sendable {
    /// Requests a reset, after the sink has refused events.
    let resume: @Sendable () -> Void
    let stop: @Sendable () -> Void

    package init(resume: @escaping @Sendable () -> Void, stop: @escaping @Sendable () -> Void) {
        (self.resume, self.stop) = (resume, stop)
    }
}

/// The changes of the result of a query, as `live(_:)` returns them.
///
/// ```swift
/// var list: [ModelRow<Book>] = []
/// for try await change in books.live(books.query(Book.self).where(\.author, "Bo").sorted(by: \.year).limit(20)) {
///     list.apply(change.difference)
/// }
/// ```
/// - The first change has the first result. Changes that are not read yet become one.
/// - Only entries that change are evaluated; the query is not run again.
/// - After 4,096 unread events, and in a client after a lost connection, the next change is a reset.
/// - The sequence ends when its cache or client is closed, or it is released. A cancelled task gets nil; in a client,
///   the first call throws `cancelled`.
/// - While a client has no connection, the sequence waits, and the rows may be out of date: `onEvent` of the client's
///   options reports a lost connection.
/// - A live query has no filters, no parts of predicates that are evaluated on models, and no `including`.
/// - There is one iteration, of one task at a time. A second one throws `invalidArgument`: call `live(_:)` again.
///
/// Thread-safe.
public final class LiveModels<Model: Codable & Sendable, Source: AsyncQuerySource>: AsyncSequence, Sendable {
    public typealias Element = LiveChange<Model>

    private enum State {
        case new
        case running(LiveFeed)
        case cancelled
    }

    private let query: ModelQuery<Model, Source>
    /// Whether the query is of the database that it is followed in.
    private let isOwn: Bool
    private let isIterated = Locked(false)
    private let mailbox = Mailbox(PendingEvents())
    private let state = Locked(State.new)
    private let list = Locked(LiveList<Model>())

    init(_ query: ModelQuery<Model, Source>, isOwn: Bool) { (self.query, self.isOwn) = (query, isOwn) }

    deinit { cancel() }

    /// Ends the sequence after the changes that have arrived. May be called repeatedly.
    public func cancel() {
        let old = state.withLock { state in
            defer { state = .cancelled }
            return state
        }
        if case .running(let feed) = old { feed.stop() }
        mailbox.finish()
    }

    public func makeAsyncIterator() -> Iterator {
        let isSecond = isIterated.withLock { isIterated in
            defer { isIterated = true }
            return isIterated
        }
        return Iterator(models: self, isSecond: isSecond)
    }

    /// The iterator of a ``LiveModels``.
    public struct Iterator: AsyncIteratorProtocol {
        let models: LiveModels
        fileprivate let isSecond: Bool

        /// Returns the next change; nil at the end.
        /// - Throws: the errors of `values()` of the query. An error ends the sequence.
        public mutating func next() async throws -> LiveChange<Model>? {
            guard !isSecond else {
                throw models.query.runner.failure(
                    .invalid("a live query is iterated only once: call live(_:) again for another iteration"))
            }
            return try await models.next()
        }
    }

    private func next() async throws -> LiveChange<Model>? {
        do { try await begin() } catch {
            cancel()
            throw error
        }
        guard let events = try await mailbox.next() else { return nil }
        let runner = query.runner
        let result = list.withLock { list in Result { try list.apply(events, runner) } }
        if case .failure = result { cancel() }
        return try result.get()
    }

    /// Starts the query at the first call.
    private func begin() async throws {
        guard case .new = state.withLock({ $0 }) else { return }
        guard isOwn else {
            throw query.runner.failure(.invalid("the query is of another cache: use live(_:) of that cache"))
        }
        if let filter = query.filters.first {
            throw query.runner.failure(
                .invalid("a live query cannot evaluate \(filter.note): filter the rows of its changes"))
        }
        guard query.runner.computed.isEmpty else {
            throw query.runner.failure(.invalid("a live query cannot be sorted by a computed index"))
        }
        guard query.inclusions.isEmpty else {
            throw query.runner.failure(.invalid("a live query loads no references: read them by their keys"))
        }
        guard let live = query.runner.live else {
            throw query.runner.failure(.invalid("a snapshot has no live queries"))
        }
        try await query.verifyProperties()
        let words = try query.words([], skip: query.skipCount, limit: query.limitCount, after: nil)
        let feed = try await live(words) { [weak mailbox] events in
            var isTaken = true
            if case .ended(let error)? = events.last {
                mailbox?.finish(error)
            } else {
                mailbox?.change { isTaken = $0.add(events) }
            }
            return isTaken
        }
        mailbox.change { $0.resume = feed.resume }
        let isCancelled = state.withLock { state in
            if case .cancelled = state { return true }
            state = .running(feed)
            return false
        }
        if isCancelled { feed.stop() }
    }
}

/// The events of a live query that were not read yet. If there are too many, they are dropped, and the reader requests
/// a reset when it reads again.
private struct PendingEvents: MailboxContent {
    private var events: [LiveEvent] = []
    private var isFull = false
    private var isRequested = false
    var resume: @Sendable () -> Void = {}

    private static let eventsMax = 4096

    /// Returns false if there are too many.
    mutating func add(_ new: [LiveEvent]) -> Bool {
        if case .reset? = new.first {
            (events, isFull, isRequested) = ([], false, false)
        } else if isFull || events.count + new.count > Self.eventsMax {
            (events, isFull) = ([], true)
            return false
        }
        events += new
        return true
    }

    mutating func take() -> Result<[LiveEvent]?, any Error>? {
        if isFull, !isRequested {
            isRequested = true
            resume()
        }
        defer { events = [] }
        return events.isEmpty ? nil : .success(events)
    }

    /// The events that have arrived can still be read.
    mutating func end() {}
}

/// A row of a live query: an entry with its model.
public struct ModelRow<Model> {
    /// The bytes of the key.
    public let keyBytes: [UInt8]
    /// The model.
    public let value: Model

    /// The key as text. Bytes that are not UTF-8 appear as U+FFFD; use ``keyBytes`` for such keys.
    public var key: String { String(decoding: keyBytes, as: UTF8.self) }
}

extension ModelRow: Sendable where Model: Sendable {}

/// A change of the result of a live query. Thread-safe: a value.
public struct LiveChange<Model: Sendable>: Sendable {
    /// A row that has left the result, and why.
    public struct Removal: Sendable {
        /// The bytes of the key.
        public let keyBytes: [UInt8]
        /// Why the row has left.
        public let reason: LiveReason
        /// The key as text: see ``ModelRow/key``.
        public var key: String { String(decoding: keyBytes, as: UTF8.self) }
    }

    /// The whole result after the change, in the order of the query.
    public let rows: [ModelRow<Model>]
    /// What has changed since the previous change: pass it to `apply(_:)` of an array with the previous rows. A row
    /// whose model has changed is removed and inserted.
    public let difference: CollectionDifference<ModelRow<Model>>
    /// The rows that have left, unless ``isReset``.
    public let removals: [Removal]
    /// Whether changes were lost: removals and reasons are unknown, and the difference replaces all rows.
    public let isReset: Bool

    /// The models of ``rows``.
    public var values: [Model] { rows.map(\.value) }
}

extension Array {
    /// Applies a difference to the list that it begins with.
    /// - Returns: false, without an effect, if the difference does not fit.
    @discardableResult
    public mutating func apply(_ difference: CollectionDifference<Element>) -> Bool {
        guard let result = applying(difference) else { return false }
        self = result
        return true
    }
}

/// The rows of a live query, with their models.
private struct LiveList<Model: Codable & Sendable>: Sendable {
    private struct Content {
        /// The text, until it is decoded.
        var text: [UInt8]?
        /// Nil if the entry is omitted because it cannot be decoded.
        var value: Model?
    }

    private var items = RowBlocks<Content>([])
    private var rows: [ModelRow<Model>] = []
    private var isBegun = false

    mutating func apply(_ events: [LiveEvent], _ runner: QueryRunner<some Error>) throws -> LiveChange<Model> {
        var touched: Set<[UInt8]> = []
        var reasons: [[UInt8]: LiveReason] = [:]
        var isReset = false
        for event in events {
            switch event {
            case .out(let key, let reason):
                items.remove(key)
                touched.insert(key)
                reasons[key] = reason
            case .set(let row, let index):
                items.remove(row.key)
                items.insert(RowBlocks.Row(key: row.key, value: Content(text: row.text)), at: index)
                touched.insert(row.key)
                reasons[row.key] = nil
            case .reset(let rows):
                items = RowBlocks(rows.map { RowBlocks.Row(key: $0.key, value: Content(text: $0.text)) })
                (isReset, reasons) = (true, [:])
            case .ended: break
            }
        }
        var decoded: [ModelRow<Model>] = []
        try items.updateEach { item in
            if let text = item.value.text {
                do { item.value.value = try runner.decode(Model.self, text, item.key) } catch {
                    if !runner.omitsUndecodable { throw error }
                }
                item.value.text = nil
            }
            if let value = item.value.value { decoded.append(ModelRow(keyBytes: item.key, value: value)) }
        }
        let old = rows
        rows = decoded
        defer { isBegun = true }
        return LiveChange(
            rows: rows, difference: Self.difference(from: old, to: rows) { isReset || touched.contains($0) },
            removals: reasons.map { LiveChange.Removal(keyBytes: $0.key, reason: $0.value) },
            isReset: isReset && isBegun)
    }

    /// The rows that were not touched have the same order before and after.
    private static func difference(
        from old: [ModelRow<Model>], to new: [ModelRow<Model>], _ isTouched: ([UInt8]) -> Bool
    ) -> CollectionDifference<ModelRow<Model>> {
        var changes: [CollectionDifference<ModelRow<Model>>.Change] = []
        for (offset, row) in old.enumerated() where isTouched(row.keyBytes) {
            changes.append(.remove(offset: offset, element: row, associatedWith: nil))
        }
        for (offset, row) in new.enumerated() where isTouched(row.keyBytes) {
            changes.append(.insert(offset: offset, element: row, associatedWith: nil))
        }
        guard let difference = CollectionDifference(changes) else { preconditionFailure("an offset is repeated") }
        return difference
    }
}

extension AsyncQuerySource {
    /// Follows the result of a query: returns the first result, and then its differences as entries change.
    ///
    /// The result has at most ``ModelQuery/limit(_:)`` rows, or 1,000; with skipped ones at most 10,000. Without
    /// `sorted`, the rows have the order of their keys. The query begins with the first iteration, which throws
    /// `invalidArgument` if it is a query of another cache.
    public func live<Model: Codable & Sendable>(_ query: ModelQuery<Model, Self>) -> LiveModels<Model, Self> {
        LiveModels(query, isOwn: query.runner.isOf(self))
    }
}
