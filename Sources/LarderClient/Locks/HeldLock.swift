/// A lock that is held while the body of a call runs: see
/// ``LarderClient/LarderClient/lock(_:for:waitingUpTo:database:_:)``.
///
/// Thread-safe: a value type.
public struct HeldLock: Sendable {
    private let lockHandle: LockHandle

    init(_ lockHandle: LockHandle) { self.lockHandle = lockHandle }

    /// The fencing token: greater than the tokens of all previous holders. Pass it to the protected resource, which
    /// should refuse tokens smaller than the last one seen. Then a holder that lost the lock while it was suspended,
    /// and has not noticed the loss yet, can do no harm.
    ///
    /// It is never reused, even after restarts, purges and power failures, unless the machine's clock is set back by
    /// more than a week. It is less than 2^53.
    public var token: UInt64 { lockHandle.token }

    /// Whether the lock is still held, as far as this process knows.
    public var isHeld: Bool { lockHandle.isHeld }

    /// Checks that the lock is still held. Call this in a body that runs for a long time without checking for
    /// cancellation.
    /// - Throws: `lockLost` if the lock is no longer held.
    public func check() throws(LarderClientError) {
        guard !lockHandle.isHeld else { return }
        if lockHandle.isReleased { throw lockHandle.name.error(.lockLost, "the lock was released when its body ended") }
        throw lockHandle.error(lockHandle.loss ?? .unreachable)
    }
}
