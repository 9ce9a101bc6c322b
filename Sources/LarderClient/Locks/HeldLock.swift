/// A lock held by the running body: see ``LarderClient/LarderClient/lock(_:for:waitingUpTo:database:_:)``.
///
/// Thread-safe: a value.
public struct HeldLock: Sendable {
    private let grip: LockHandle

    init(_ grip: LockHandle) { self.grip = grip }

    /// The fencing token: greater than the tokens of all previous holders. Pass it to the protected resource, which
    /// should refuse tokens smaller than the last one seen. A holder that was suspended and does not know yet that it
    /// has lost the lock then does no harm.
    ///
    /// It is never reused, even after restarts, purges and power failures, unless the machine's clock is set back by
    /// more than a week. It is less than 2^53.
    public var token: UInt64 { grip.token }

    /// Whether the lock is still held, as far as this process knows.
    public var isHeld: Bool { grip.isHeld }

    /// Checks that the lock is still held. For a body that works for long without checking for cancellation.
    /// - Throws: `lockLost` if the lock is no longer held.
    public func check() throws(LarderClientError) {
        guard !grip.isHeld else { return }
        if grip.isReleased { throw grip.name.error(.lockLost, "the lock was released when its body ended") }
        throw grip.error(grip.loss ?? .unreachable)
    }
}
