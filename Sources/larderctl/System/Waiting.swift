import LarderPlatform

/// Lets a thread that is not in a task, such as the main thread, wait for a task.
///
/// `@unchecked Sendable`: mutable state is guarded by `lock`.
final class Waiting<Value: Sendable>: @unchecked Sendable {
    private let lock = Lock()
    private let changed = Condition()
    private var value: Value?

    private init() {}

    /// Blocks until the task has completed, and returns its value.
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
