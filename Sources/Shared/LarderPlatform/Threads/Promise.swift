import Synchronization

/// A value that is set once, and for which one task waits.
///
/// Thread-safe. `@unchecked Sendable`: the value is written by the call of ``set(_:)`` that adds ``hasSetter``, and the
/// continuation by the waiting task. Each is read only after the flag that is added after its write.
@usableFromInline package final class Promise<Value: Sendable>: @unchecked Sendable {
    @usableFromInline static var hasSetter: UInt8 { 1 }
    @usableFromInline static var hasValue: UInt8 { 2 }
    @usableFromInline static var hasTask: UInt8 { 4 }

    @usableFromInline let flags = Atomic<UInt8>(0)
    @usableFromInline var value: Value?
    @usableFromInline var continuation: UnsafeContinuation<Void, Never>?

    package init() {}

    /// Sets the value and wakes the waiting task, unless a value was set before.
    /// - Returns: whether the value was set.
    @discardableResult
    @inlinable package func set(_ value: Value) -> Bool {
        guard flags.bitwiseOr(Self.hasSetter, ordering: .relaxed).oldValue & Self.hasSetter == 0 else { return false }
        self.value = value
        let before = flags.bitwiseOr(Self.hasValue, ordering: .acquiringAndReleasing).oldValue
        if before & Self.hasTask != 0 { continuation?.resume() }
        return true
    }

    /// Waits for the value. A cancellation of the task does not end the wait. May be called once.
    @inlinable package nonisolated(nonsending) func value() async -> Value {
        while true {
            // Also read the flags after the resumption: ThreadSanitizer does not know that it follows `set`.
            if flags.load(ordering: .acquiring) & Self.hasValue != 0, let value { return value }
            await withUnsafeContinuation { (continuation: UnsafeContinuation<Void, Never>) in
                self.continuation = continuation
                let before = flags.bitwiseOr(Self.hasTask, ordering: .acquiringAndReleasing).oldValue
                if before & Self.hasValue != 0 { continuation.resume() }
            }
        }
    }
}

extension Task where Success == Void, Failure == Never {
    /// Runs `body` after a time, unless the task is cancelled before.
    package static func delayed(milliseconds: Int64, _ body: @escaping @Sendable () -> Void) -> Self {
        Task { if (try? await Task<Never, Never>.sleep(for: .milliseconds(milliseconds))) != nil { body() } }
    }
}
