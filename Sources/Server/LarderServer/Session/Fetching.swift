import LarderEngine
import Synchronization

/// A FETCH that waits for another connection's value. It belongs to its session; any thread may wake it.
final class WaitingFetch: Sendable {
    let request: FetchRequest
    let database: Database
    /// The end of the wait, in milliseconds of the monotonic clock.
    let until: Int64
    /// Whether the command must run again.
    let isWoken: Flag

    /// A flag that any thread may set.
    final class Flag: Sendable {
        private let value = Atomic<Bool>(false)
        var isSet: Bool { value.load(ordering: .acquiring) }
        func set() { value.store(true, ordering: .releasing) }
        func clear() { value.store(false, ordering: .releasing) }
    }

    init(_ request: FetchRequest, _ database: Database, until: Int64, _ isWoken: Flag) {
        self.request = request
        self.database = database
        self.until = until
        self.isWoken = isWoken
    }
}

/// The leases of a connection, and its waiting FETCH. A value type, used by the session's owner.
struct Fetching {
    /// The waiting command.
    var waiting: WaitingFetch?
    /// The connection's leases; nil before the first.
    private var leases: LeaseHolder?

    /// Returns the holder of the connection's leases.
    /// - Parameter most: the most leases.
    mutating func holder(most: Int) -> LeaseHolder {
        if let leases { return leases }
        let holder = LeaseHolder(most: most, limitName: "--max-leases")
        leases = holder
        return holder
    }

    /// Passes the leases on to waiters, because the connection was closed or reset. Many leases are released on another
    /// thread, so that this does not delay other connections.
    mutating func end(elsewhere: ((@escaping @Sendable () -> Void) -> Void)?) {
        if let waiting { waiting.database.stopWaiting(waiting.request) }
        waiting = nil
        leases?.end(elsewhere: elsewhere)
        leases = nil
    }
}
