import LarderPlatform

/// A place where a thread can be made to wait.
///
/// Thread-safe. The proof for `@unchecked Sendable`: the state is read and written with the lock held.
package final class Gate: @unchecked Sendable {
    private let lock = Lock()
    private let changed = Condition()
    private var isClosed: Bool
    private var waiting = 0

    package init(isClosed: Bool = false) { self.isClosed = isClosed }

    package var isOpen: Bool { lock.withLock { !isClosed } }

    package func close() { lock.withLock { isClosed = true } }

    package func open() {
        lock.withLock {
            isClosed = false
            changed.broadcast()
        }
    }

    /// Waits while the gate is closed.
    package func pass() {
        lock.withLock {
            waiting += 1
            changed.broadcast()
            while isClosed { changed.wait(lock) }
            waiting -= 1
        }
    }

    /// How many threads wait to pass.
    package var waitingCount: Int { lock.withLock { waiting } }

    /// Waits until so many threads wait to pass.
    package func waitUntil(waiting count: Int = 1) {
        lock.withLock { while waiting < count { changed.wait(lock) } }
    }
}
