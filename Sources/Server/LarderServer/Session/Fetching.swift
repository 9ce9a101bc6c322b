import LarderEngine
import Synchronization

/// A FETCH that waits for another connection's value. Its session owns it; what wakes it may be any thread.
final class WaitingFetch: Sendable {
    let request: FetchRequest
    let database: Database
    /// When the command stops waiting, in milliseconds of the monotonic clock.
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

/// What a connection refreshes, and what it waits for. A value; the session's owner uses it.
struct Fetching {
    /// The command that waits.
    var waiting: WaitingFetch?
    /// The connection's leases; nil before the first.
    private var leases: LeaseHolder?

    /// Who holds the connection's leases.
    /// - Parameter most: how many.
    mutating func holder(most: Int) -> LeaseHolder {
        if let leases { return leases }
        let holder = LeaseHolder(most: most, limitName: "--max-leases")
        leases = holder
        return holder
    }

    /// The connection ends, or begins anew: somebody else gets its leases. Many of them on another thread, so that nobody
    /// waits for that.
    mutating func end(elsewhere: ((@escaping @Sendable () -> Void) -> Void)?) {
        if let waiting { waiting.database.stopWaiting(waiting.request) }
        waiting = nil
        leases?.end(elsewhere: elsewhere)
        leases = nil
    }
}
