import LarderPlatform

/// The identity of a lock: its database and its key. A value type.
struct LockName: Hashable, Sendable {
    private let store: ObjectIdentifier
    let key: [UInt8]
    let database: String

    init(_ store: DatabaseStore, _ key: [UInt8]) {
        self.store = ObjectIdentifier(store)
        self.key = key
        database = store.name
    }

    var printable: String { printableKey(key) }
    /// The key of the entry with the last fencing token.
    var fence: [UInt8] { key + Array(":fence".utf8) }
    /// The key that waiting callers request with FETCH. It never has an entry.
    var queue: [UInt8] { key + Array(":queue".utf8) }

    func error(_ code: LarderClientError.Code, _ message: String, _ underlying: (any Error)? = nil)
        -> LarderClientError
    {
        LarderClientError(
            code, message, operation: "lock", database: database, key: printable, underlying: underlying)
    }
}

/// A lock that this process has acquired, and what the process knows about its state.
///
/// Thread-safe.
final class LockHandle: Sendable {
    enum Loss {
        /// The lock's entry was removed, or belongs to another holder.
        case taken
        /// The daemon could not be reached before the lock expired.
        case unreachable
    }

    /// The locks in whose bodies the current task runs, outermost first.
    @TaskLocal static var held: [LockHandle] = []

    let name: LockName
    let token: UInt64
    /// How long the lock is valid without renewal, in milliseconds.
    let milliseconds: Int64
    let clock: LockClock
    private let state: Locked<(end: Int64, loss: Loss?, isReleased: Bool)>

    init(_ name: LockName, token: UInt64, milliseconds: Int64, end: Int64, clock: LockClock) {
        self.name = name
        self.token = token
        self.milliseconds = milliseconds
        self.clock = clock
        state = Locked((end: end, loss: nil, isReleased: false))
    }

    /// When the lock expires, in milliseconds of ``clock``.
    var validUntil: Int64 { state.withLock { $0.end } }
    var loss: Loss? { state.withLock { $0.loss } }
    /// Whether the body of the lock has ended.
    var isReleased: Bool { state.withLock { $0.isReleased } }
    var isHeld: Bool {
        let now = clock.now()
        return state.withLock { $0.loss == nil && !$0.isReleased && now < $0.end }
    }

    func renew(until end: Int64) { state.withLock { $0.end = max($0.end, end) } }
    func lose(_ loss: Loss) { state.withLock { $0.loss = $0.loss ?? loss } }
    func release() { state.withLock { $0.isReleased = true } }

    func error(_ loss: Loss, _ underlying: (any Error)? = nil) -> LarderClientError {
        switch loss {
        case .taken:
            name.error(.lockLost, "the lock was lost: its entry was removed, or has another holder", underlying)
        case .unreachable:
            name.error(
                .lockLost, "the lock was lost: it could not be renewed within its \(milliseconds) ms", underlying)
        }
    }
}

extension LockHandle {
    /// Renews the lock each time a third of its duration has passed, until the task is cancelled or the lock is lost.
    /// - Returns: true if the lock was lost, which is then recorded in the handle; false if the task was cancelled.
    func keep(_ queue: LockQueue) async -> Bool {
        var rest = max(1, milliseconds / 3)
        while true {
            guard (try? await clock.sleep(rest)) != nil else { return false }
            let sentAt = clock.now()
            let answer = await renew(queue)
            if Task.isCancelled { return false }
            switch answer {
            case true?:
                renew(until: sentAt + milliseconds)
                rest = max(1, milliseconds / 3)
            case false?:
                lose(.taken)
                return true
            case nil:
                let left = validUntil - clock.now()
                guard left > 0 else {
                    lose(.unreachable)
                    return true
                }
                rest = min(left, max(1, milliseconds / 10))
            }
        }
    }

    /// Renews the lock once.
    /// - Returns: whether the lock still belongs to this holder; nil if the daemon did not answer before the lock
    ///   expired.
    private func renew(_ queue: LockQueue) async -> Bool? {
        let left = validUntil - clock.now()
        guard left > 0 else { return nil }
        return await withTaskGroup(of: Bool?.self) { group in
            group.addTask { await queue.renew() }
            group.addTask { [clock] in
                try? await clock.sleep(left)
                return nil
            }
            let first = await group.next()
            group.cancelAll()
            return first ?? nil
        }
    }
}

/// A lock that is held while the body of a call runs: see
/// ``LarderClient/LarderClient/lock(_:for:waitingUpTo:database:_:)``.
///
/// Thread-safe: a value type.
public struct HeldLock: Sendable {
    private let lockHandle: LockHandle

    init(_ lockHandle: LockHandle) { self.lockHandle = lockHandle }

    /// The fencing token: greater than the tokens of all previous holders. Pass it to the protected resource, which
    /// should refuse tokens smaller than the last token that it has received. Then a holder that lost the lock while it
    /// was suspended, and has not noticed the loss yet, can do no harm.
    ///
    /// A token is never reused, even after restarts, purges and power failures, unless the machine's clock is set back
    /// by more than a week. Tokens are less than 2^53.
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

/// The clock that determines how long a holder's lock is valid. It continues while the machine sleeps. A value type.
struct LockClock: Sendable {
    /// Milliseconds since a fixed instant.
    let now: @Sendable () -> Int64
    /// Sleeps for the given number of milliseconds; throws if the task is cancelled.
    let sleep: @Sendable (Int64) async throws -> Void

    static let system = {
        let start = ContinuousClock.now
        return LockClock(
            now: {
                let span = start.duration(to: .now).components
                return span.seconds * 1_000 + span.attoseconds / 1_000_000_000_000_000
            },
            sleep: { try await Task.sleep(for: .milliseconds($0), clock: .continuous) })
    }()
}
