import LarderPlatform

/// Interrupts a thread that waits on a connection, from another thread.
///
/// Thread-safe. `@unchecked Sendable`: the mutable properties are guarded by `lock`.
final class Interruption: @unchecked Sendable {
    private let lock = Lock()
    private var descriptor: CInt?
    private var isWanted = false

    /// Registers a wait on a connection, which must stay open until ``end()``.
    func begin(_ descriptor: CInt) {
        lock.withLock {
            self.descriptor = descriptor
            if isWanted { shutdown(descriptor, CInt(SHUT_RDWR)) }
        }
    }

    func end() { lock.withLock { descriptor = nil } }

    /// Shuts down the connection of the current wait, and of every wait that begins before ``forget()``.
    func interrupt() {
        lock.withLock {
            isWanted = true
            if let descriptor { shutdown(descriptor, CInt(SHUT_RDWR)) }
        }
    }

    func forget() { lock.withLock { isWanted = false } }
}
