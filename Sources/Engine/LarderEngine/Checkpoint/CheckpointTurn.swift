import LarderPlatform
import Synchronization

/// Allows one checkpoint or flush at a time. Like a lock, but a thread can stop waiting for it as soon as the running
/// checkpoint has made room.
///
/// Thread-safe. Not recursive.
final class CheckpointTurn: Sendable {
    private let lock = Lock()
    private let changed = Condition()
    /// Changed with `lock` held.
    private let isTaken = Atomic<Bool>(false)

    /// Takes the turn, after waiting for it while `isNeeded` returns true.
    /// - Parameter isNeeded: called again after each ``noteRoom()``. It must not block.
    /// - Returns: whether the turn was taken; the caller must then call ``unlock()``.
    func take(while isNeeded: () -> Bool) -> Bool {
        lock.withLock {
            while isNeeded() {
                if !isTaken.exchange(true, ordering: .relaxed) { return true }
                changed.wait(lock)
            }
            return false
        }
    }

    func tryLock() -> Bool { lock.withLock { !isTaken.exchange(true, ordering: .relaxed) } }

    func unlock() {
        lock.withLock {
            isTaken.store(false, ordering: .relaxed)
            changed.broadcast()
        }
    }

    func withLock<Result, Failure: Error>(_ body: () throws(Failure) -> Result) throws(Failure) -> Result {
        _ = take { true }
        defer { unlock() }
        return try body()
    }

    /// Wakes the waiting threads, so that they test whether they still need the turn.
    func noteRoom() { lock.withLock { changed.broadcast() } }
}
