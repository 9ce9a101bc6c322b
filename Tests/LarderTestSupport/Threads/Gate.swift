import LarderPlatform

/// A gate at which a thread can be made to wait.
///
/// Thread-safe. `@unchecked Sendable`: the state is guarded by `lock`.
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

    /// The number of waiting threads.
    package var waitingCount: Int { lock.withLock { waiting } }

    /// Waits until the given number of threads wait at the gate.
    package func waitUntil(waiting count: Int = 1) {
        lock.withLock { while waiting < count { changed.wait(lock) } }
    }
}
