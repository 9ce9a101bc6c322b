/// A lock that the running body holds: see ``LarderClient/LarderClient/lock(_:for:waitingUpTo:database:_:)``.
///
/// Thread-safe: a value.
public struct HeldLock: Sendable {
    private let grip: LockHandle

    init(_ grip: LockHandle) { self.grip = grip }

    /// The fencing token: greater than that of everybody who has held the lock before. Hand it to what the lock protects,
    /// and let that refuse a smaller token than it has seen: a holder that was stopped for long, and does not know yet
    /// that it has lost the lock, then does no harm.
    ///
    /// It is never used again, also after restarts, purges and power failures, as long as the machine's clock is not set
    /// back by more than a week. It is less than 2^53.
    public var token: UInt64 { grip.token }

    /// Whether the lock is held still, as far as this process knows without asking.
    public var isHeld: Bool { grip.isHeld }

    /// For a body that works for long without looking at its task's cancellation.
    /// - Throws: `lockLost` if the lock is not held any more.
    public func check() throws(LarderClientError) {
        guard !grip.isHeld else { return }
        if grip.isReleased { throw grip.name.error(.lockLost, "the lock was released when its body ended") }
        throw grip.error(grip.loss ?? .unreachable)
    }
}
