import LarderPlatform
import LarderRESP

/// The waits of a connection's current command, except for those for an origin, and how the command is woken. A value
/// type, owned by its session.
struct Waits {
    var fetching = Fetching()
    /// The wait of a CHANGES command.
    var feed = FeedWait()
    /// The reply that another thread will set, if the current command waits for one; otherwise nil.
    var reply: Awaited<Result<RESPValue, CommandError>>?
    /// Makes the loop run a waiting command again. Thread-safe; nil for a session without a connection.
    var wakeUp: (@Sendable () -> Void)?
    /// Runs short work on another thread, because it would block the loop; nil for a session without a connection.
    var runElsewhere: ((@escaping @Sendable () -> Void) -> Void)?

    /// Whether a command waits and has not been woken.
    var areOpen: Bool {
        if let reply { return reply.value == nil }
        return fetching.waiting.map { !$0.isWoken.isSet } ?? feed.isWaiting
    }

    /// Ends the waits of FETCH and CHANGES, and the connection's leases. Called when the connection is closed or reset.
    mutating func end() {
        fetching.end(elsewhere: runElsewhere)
        feed.stop()
    }
}

/// A value that another thread will deliver to a waiting command. The command's session owns it; any thread may set it.
///
/// `@unchecked Sendable`: the value is guarded by `lock`.
final class Awaited<Value: Sendable>: @unchecked Sendable {
    private let lock = Lock()
    private var current: Value?
    private let wakeUp: (@Sendable () -> Void)?

    /// - Parameter wakeUp: makes the event loop run the command again; called when the value is set.
    init(wakeUp: (@Sendable () -> Void)?) { self.wakeUp = wakeUp }

    /// The value; nil until it is set.
    var value: Value? { lock.withLock { current } }

    func set(_ value: Value) {
        lock.withLock { current = value }
        wakeUp?()
    }
}
