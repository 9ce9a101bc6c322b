import Threading

/// A value that several threads of a test share.
///
/// Thread-safe. The proof for `@unchecked Sendable`: the value is read and written with the lock held.
final class Mutexed<Value>: @unchecked Sendable {
    private let lock = Lock()
    private var value: Value

    init(_ value: Value) { self.value = value }

    func with<Result>(_ body: (inout Value) throws -> Result) rethrows -> Result {
        try lock.withLock { try body(&value) }
    }

    /// A copy of the value.
    var current: Value { with { $0 } }
}

/// Runs `body` on `count` threads at once, and waits for all.
func onThreads(_ count: Int, _ body: @escaping @Sendable (Int) -> Void) {
    let threads = (0..<count).map { index in WorkThread(name: "test-\(index)") { body(index) } }
    for thread in threads { thread.join() }
}

/// Threads that run beside the test until they are joined.
final class WorkThreads {
    private let threads: [WorkThread]

    init(_ count: Int, _ body: @escaping @Sendable (Int) -> Void) {
        threads = (0..<count).map { index in WorkThread(name: "test-\(index)") { body(index) } }
    }

    func join() { for thread in threads { thread.join() } }
}
