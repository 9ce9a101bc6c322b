import Platform

/// Ends the waiting of a thread for a connection, from another thread.
///
/// Thread-safe. The proof for `@unchecked Sendable`: the mutable property is touched only with the lock held.
final class Interruption: @unchecked Sendable {
    private let lock = Lock()
    private var descriptor: CInt?

    /// The caller begins to wait for a connection, which stays open until ``end()``.
    func begin(_ descriptor: CInt) { lock.withLock { self.descriptor = descriptor } }

    func end() { lock.withLock { descriptor = nil } }

    /// Ends the connection that somebody waits for.
    /// - Returns: false if nobody does.
    func interrupt() -> Bool {
        lock.withLock {
            guard let descriptor else { return false }
            shutdown(descriptor, CInt(SHUT_RDWR))
            return true
        }
    }
}
