import LarderPlatform

/// The main thread's way to wait for a task.
///
/// Thread-safe. The proof for `@unchecked Sendable`: what changes is read and written with the lock held.
final class Waiting<Value: Sendable>: @unchecked Sendable {
    private let lock = Lock()
    private let changed = Condition()
    private var value: Value?

    private init() {}

    /// Blocks until the task has ended.
    static func result(of task: Task<Value, Never>) -> Value {
        let place = Waiting()
        Task {
            let value = await task.value
            place.lock.withLock {
                place.value = value
                place.changed.signal()
            }
        }
        return place.lock.withLock {
            while true {
                if let value = place.value { return value }
                place.changed.wait(place.lock)
            }
        }
    }
}
