/// The elements in a ``Mailbox``: decides what a slow reader loses, and how it learns of the gap. A value, guarded by
/// the mailbox's lock.
package protocol MailboxContent {
    associatedtype Element: Sendable
    associatedtype Failure: Error

    /// Removes and returns the next element, or an error to throw once; nil if there is none.
    mutating func take() -> Result<Element?, Failure>?
    /// Called when no element follows. May drop the remaining ones.
    mutating func end()
}

/// Passes elements from any thread to the tasks that wait for them. Its size is limited by its content.
///
/// Thread-safe. `@unchecked Sendable`: mutable state is guarded by `lock`.
package final class Mailbox<Content: MailboxContent>: @unchecked Sendable {
    private typealias Step = Result<Content.Element?, Content.Failure>

    private let takers = WaitingTasks<Step>()
    private var lock: Lock { takers.lock }
    private var content: Content
    private var end: Step?

    package init(_ content: Content) { self.content = content }

    /// Whether ``finish(_:)`` was called.
    package var isFinished: Bool { lock.withLock { end != nil } }
    /// The number of waiting tasks, for tests.
    package var takerCount: Int { lock.withLock { takers.promises.count } }
    /// A copy of the content, for tests.
    package var contentNow: Content { lock.withLock { content } }

    /// Runs `body`, which adds elements, and passes elements to waiting tasks. Does nothing after the end.
    package func change(_ body: (inout Content) -> Void) {
        var served: [(taker: Promise<Step>, step: Step)] = []
        lock.withLock {
            guard end == nil else { return }
            body(&content)
            while let taker = takers.promises.first, let step = content.take() {
                _ = takers.promises.popFirst()
                served.append((taker, step))
            }
        }
        for (taker, step) in served { taker.set(step) }
    }

    /// Ends the sequence: readers get the remaining elements, and then the error or nil. The first end counts.
    package func finish(_ error: Content.Failure? = nil) {
        let step: Step = error.map { .failure($0) } ?? .success(nil)
        let waiting = lock.withLock {
            if end == nil { end = step }
            content.end()
            return takers.promises.takeAll()
        }
        for taker in waiting { taker.set(step) }
    }

    /// Returns the next element; nil at the end, or if the task was cancelled.
    package nonisolated(nonsending) func next() async throws(Content.Failure) -> Content.Element? {
        try await takers.value(cancelled: .success(nil)) { content.take() ?? end }.get()
    }
}
