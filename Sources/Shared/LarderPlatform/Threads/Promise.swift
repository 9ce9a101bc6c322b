import Synchronization

/// A value that is set once, and for which one task waits.
///
/// Thread-safe. `@unchecked Sendable`: only the first call of ``set(_:)`` writes the value, and only the waiting task
/// writes the continuation. After each write, a flag is set. Other threads read only after they have seen the flag.
@usableFromInline package final class Promise<Value: Sendable>: @unchecked Sendable {
    @usableFromInline static var hasSetter: UInt8 { 1 }
    @usableFromInline static var hasValue: UInt8 { 2 }
    @usableFromInline static var hasTask: UInt8 { 4 }

    @usableFromInline let flags = Atomic<UInt8>(0)
    @usableFromInline var value: Value?
    @usableFromInline var continuation: UnsafeContinuation<Void, Never>?

    package init() {}

    /// Sets the value and wakes the waiting task, unless a value was set before.
    /// - Returns: whether the value was set.
    @discardableResult
    @inlinable package func set(_ value: Value) -> Bool {
        guard flags.bitwiseOr(Self.hasSetter, ordering: .relaxed).oldValue & Self.hasSetter == 0 else { return false }
        self.value = value
        let before = flags.bitwiseOr(Self.hasValue, ordering: .acquiringAndReleasing).oldValue
        if before & Self.hasTask != 0 { continuation?.resume() }
        return true
    }

    /// Waits for the value. A cancellation of the task does not end the wait. May be called once.
    @inlinable package nonisolated(nonsending) func value() async -> Value {
        while true {
            // Also read the flags after the resumption: ThreadSanitizer does not know that it follows `set`.
            if flags.load(ordering: .acquiring) & Self.hasValue != 0, let value { return value }
            await withUnsafeContinuation { (continuation: UnsafeContinuation<Void, Never>) in
                self.continuation = continuation
                let before = flags.bitwiseOr(Self.hasTask, ordering: .acquiringAndReleasing).oldValue
                if before & Self.hasValue != 0 { continuation.resume() }
            }
        }
    }
}

extension Task where Success == Void, Failure == Never {
    /// Runs `body` after a time, unless the task is cancelled before.
    package static func delayed(milliseconds: Int64, _ body: @escaping @Sendable () -> Void) -> Self {
        Task { if (try? await Task<Never, Never>.sleep(for: .milliseconds(milliseconds))) != nil { body() } }
    }
}

/// The tasks that wait for values of one object, in the order of their calls.
///
/// Thread-safe. `@unchecked Sendable`: ``promises`` is guarded by ``lock``.
package final class WaitingTasks<Value: Sendable>: @unchecked Sendable {
    package let lock = Lock()
    /// Only the thread that removes a promise sets it.
    package var promises = Deque<Promise<Value>>()

    package init() {}

    /// Returns the result of `take`, or waits for a value if there is none.
    /// - Parameters:
    ///   - cancelled: the result if the task is cancelled.
    ///   - timeout: the longest wait in milliseconds, and the result after it; nil for no limit.
    ///   - take: called with the lock held.
    package nonisolated(nonsending) func value(
        cancelled: Value, timeout: (milliseconds: Int64, value: Value)? = nil, _ take: () -> Value?
    ) async -> Value {
        let promise = Promise<Value>()
        return await withTaskCancellationHandler {
            let value = lock.withLock {
                let value = Task.isCancelled ? cancelled : take()
                if value == nil { promises.append(promise) }
                return value
            }
            if let value { return value }
            let timer = timeout.map { [self] timeout in
                Task.delayed(milliseconds: timeout.milliseconds) { self.end(promise, timeout.value) }
            }
            defer { timer?.cancel() }
            return await promise.value()
        } onCancel: {
            end(promise, cancelled)
        }
    }

    /// Ends the wait of a task, unless its promise was removed, or the task has not begun to wait.
    private func end(_ promise: Promise<Value>, _ value: Value) {
        if lock.withLock({ promises.remove(promise) }) { promise.set(value) }
    }
}

/// Ends the `run()` of an object that lives for a long time.
package final class EndSignal: Sendable {
    private let tasks = WaitingTasks<Void>()
    private let flag = Atomic(false)

    package init() {}

    /// Whether ``set()`` was called.
    package var isSet: Bool { flag.load(ordering: .acquiring) }

    package func set() {
        flag.store(true, ordering: .releasing)
        for task in tasks.lock.withLock({ tasks.promises.takeAll() }) { task.set(()) }
    }

    /// Waits until ``set()`` was called, or the task is cancelled.
    package nonisolated(nonsending) func wait() async { await tasks.value(cancelled: ()) { isSet ? () : nil } }

    /// Waits until `isDone` has returned true for 10 ms, the time is over, or the task is cancelled. A call that makes
    /// several requests has none between two of them.
    package nonisolated(nonsending) static func poll(milliseconds: Int64, _ isDone: () -> Bool) async {
        let end = MonotonicClock.milliseconds() + milliseconds
        var doneCount = 0
        while MonotonicClock.milliseconds() < end {
            doneCount = isDone() ? doneCount + 1 : 0
            if doneCount == 3 { return }
            guard (try? await Task.sleep(for: .milliseconds(5))) != nil else { return }
        }
    }
}

/// Counts the running calls of an object, so that a graceful end can wait for them.
package final class RunningCalls: Sendable {
    private let count = Atomic(0)

    package init() {}

    package var isEmpty: Bool { count.load(ordering: .acquiring) == 0 }

    /// Notes that a call begins. The caller must then call ``end()`` once.
    package func begin() { count.add(1, ordering: .relaxed) }
    package func end() { count.subtract(1, ordering: .releasing) }
}

/// Wakes a waiting task. ``signal()`` may be called from any thread, and with locks held.
package final class WakeUp: Sendable {
    /// The end of the current wait, or of the next one.
    private let next = Locked(Promise<Void>())

    package init() {}

    package func signal() { next.withLock { $0 }.set(()) }

    /// Waits for a signal (also since the previous wait), the timeout or a cancellation. For one task at a time.
    package nonisolated(nonsending) func wait(milliseconds: Int64) async {
        let promise = next.withLock { $0 }
        let timer = Task.delayed(milliseconds: max(1, milliseconds)) { promise.set(()) }
        await withTaskCancellationHandler {
            await promise.value()
        } onCancel: {
            promise.set(())
        }
        timer.cancel()
        next.withLock { $0 = Promise() }
    }
}

/// Collects a fixed number of results, for a thread that waits for all of them.
package final class BlockingResults<Result: Sendable>: Sendable {
    private let state: Locked<(results: [Result?], missing: Int)>
    private let isComplete = Latch()

    package init(_ count: Int) {
        state = Locked((Array(repeating: nil, count: count), count))
        if count == 0 { isComplete.set() }
    }

    package func set(_ position: Int, _ result: Result) {
        let isLast = state.withLock {
            $0.results[position] = .some(result)
            $0.missing -= 1
            return $0.missing == 0
        }
        if isLast { isComplete.set() }
    }

    package func wait() -> [Result] {
        isComplete.wait()
        return state.withLock { $0.results.compactMap { $0 } }
    }
}

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
