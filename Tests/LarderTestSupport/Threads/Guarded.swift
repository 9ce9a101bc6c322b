import LarderPlatform

/// A value shared by several threads of a test. Replaces `Mutex`, for which ThreadSanitizer reports false races.
///
/// Thread-safe. `@unchecked Sendable`: the value is guarded by `lock`.
package final class Guarded<Value>: @unchecked Sendable {
    private let lock = Lock()
    private var stored: Value

    package init(_ value: Value) { stored = value }

    /// A copy of the value; setting it replaces the value.
    package var value: Value {
        get { lock.withLock { stored } }
        set { lock.withLock { stored = newValue } }
    }

    /// Reads and changes the value in one step.
    package func with<Result>(_ body: (inout Value) throws -> Result) rethrows -> Result {
        try lock.withLock { try body(&stored) }
    }
}
