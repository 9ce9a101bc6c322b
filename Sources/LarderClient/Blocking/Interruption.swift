import LarderPlatform

/// Ends the waiting of a thread for a connection, from another thread.
///
/// Thread-safe. The proof for `@unchecked Sendable`: the mutable properties are touched only with the lock held.
final class Interruption: @unchecked Sendable {
    private let lock = Lock()
    private var descriptor: CInt?
    private var isWanted = false

    /// The caller begins to wait for a connection, which stays open until ``end()``.
    func begin(_ descriptor: CInt) {
        lock.withLock {
            self.descriptor = descriptor
            if isWanted { shutdown(descriptor, CInt(SHUT_RDWR)) }
        }
    }

    func end() { lock.withLock { descriptor = nil } }

    /// Ends the connection that somebody waits for, and all that somebody begins to wait for until ``forget()``.
    func interrupt() {
        lock.withLock {
            isWanted = true
            if let descriptor { shutdown(descriptor, CInt(SHUT_RDWR)) }
        }
    }

    func forget() { lock.withLock { isWanted = false } }
}
