import LarderPlatform

/// A value that several threads of a test share. In place of `Mutex`, which makes ThreadSanitizer report races that are none.
///
/// Thread-safe. The proof for `@unchecked Sendable`: the value is read and written with the lock held.
package final class Guarded<Value>: @unchecked Sendable {
    private let lock = Lock()
    private var stored: Value

    package init(_ value: Value) { stored = value }

    /// A copy of the value, or another one in its place.
    package var value: Value {
        get { lock.withLock { stored } }
        set { lock.withLock { stored = newValue } }
    }

    /// Reads and changes the value in one step.
    package func with<Result>(_ body: (inout Value) throws -> Result) rethrows -> Result {
        try lock.withLock { try body(&stored) }
    }
}
