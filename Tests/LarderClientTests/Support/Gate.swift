import Threading

/// Keeps threads waiting until it is opened. Thread-safe; the proof for `@unchecked Sendable`: its state is touched
/// only with `lock` held.
final class Gate: @unchecked Sendable {
    private let lock = Lock()
    private let changed = Condition()
    private var isOpened = false

    var isOpen: Bool { lock.withLock { isOpened } }

    func open() {
        lock.withLock { isOpened = true }
        changed.broadcast()
    }

    func wait() {
        lock.withLock {
            while !isOpened { changed.wait(lock) }
        }
    }
}
