import LarderEngine
import Synchronization

/// A FETCH command that waits while another client has the lease to compute the value. The session owns this object.
/// Any thread may wake the command.
final class WaitingFetch: Sendable {
    let request: FetchRequest
    let database: Database
    /// When the wait ends, in milliseconds of the monotonic clock.
    let until: Int64
    /// Whether another thread has woken the command, so that it must run again.
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

/// The leases of a connection, and its waiting FETCH command. A lease is the exclusive right to compute a missing
/// value. A value type, used only by the session's owner.
struct Fetching {
    /// The waiting command; nil if none waits.
    var waiting: WaitingFetch?
    /// The connection's leases; nil before its first FETCH.
    private var leases: LeaseHolder?

    /// Returns the holder of the connection's leases, and creates it if there is none.
    /// - Parameter most: the maximum number of leases that the connection may have.
    mutating func holder(most: Int) -> LeaseHolder {
        if let leases { return leases }
        let holder = LeaseHolder(most: most, limitName: "--max-leases")
        leases = holder
        return holder
    }

    /// Releases the leases, so that waiting clients can get them. Called when the connection is closed or reset.
    /// Releases many leases on another thread, so that other connections are not delayed.
    mutating func end(elsewhere: ((@escaping @Sendable () -> Void) -> Void)?) {
        if let waiting { waiting.database.leases.stopWaiting(waiting.request) }
        waiting = nil
        leases?.end(elsewhere: elsewhere)
        leases = nil
    }
}
