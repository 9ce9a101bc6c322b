import Threading

/// A place where a thread can be made to wait.
///
/// Thread-safe. The proof for `@unchecked Sendable`: the state is read and written with the lock held.
package final class Gate: @unchecked Sendable {
    private let lock = Lock()
    private let changed = Condition()
    private var isClosed = false
    private var waiting = 0

    package init() {}

    package func close() { lock.withLock { isClosed = true } }

    package func open() {
        lock.withLock {
            isClosed = false
            changed.broadcast()
        }
    }

    package func pass() {
        lock.withLock {
            waiting += 1
            changed.broadcast()
            while isClosed { changed.wait(lock) }
            waiting -= 1
        }
    }

    package func waitUntilSomebodyWaits() { waitUntil(waiting: 1) }

    package func waitUntil(waiting count: Int) {
        lock.withLock { while waiting < count { changed.wait(lock) } }
    }
}
