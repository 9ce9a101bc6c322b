import Threading

/// A value behind a lock.
///
/// Thread-safe. The proof for `@unchecked Sendable`: the value is read and written with the lock held.
final class Guarded<Value>: @unchecked Sendable {
    private let lock = Lock()
    private var stored: Value

    init(_ value: Value) { stored = value }

    var value: Value { lock.withLock { stored } }

    func change(_ body: (inout Value) -> Void) { lock.withLock { body(&stored) } }
}
