import LarderEngine

/// A permit for one open snapshot. The number of permits is limited. Releasing the object returns the permit.
///
/// Thread-safe: immutable.
final class SnapshotSlot: Sendable {
    private let server: ServerState

    /// Takes a slot.
    /// - Returns: nil if all slots are taken.
    init?(_ server: ServerState) {
        self.server = server
        let taken = server.openSnapshots.wrappingAdd(1, ordering: .relaxed).newValue
        // Even if this initializer returns nil, deinit runs, and decreases the count again.
        guard taken <= server.limits.snapshotsMax else { return nil }
    }

    deinit { server.openSnapshots.add(-1) }
}

/// A snapshot that a connection reads from. It is closed when its last reference is released. There is no explicit
/// close, because it would have to wait for commands that still read from the snapshot on another thread.
///
/// Thread-safe: immutable.
final class OpenSnapshot: Sendable {
    let snapshot: Snapshot
    private let slot: SnapshotSlot

    init(_ snapshot: Snapshot, _ slot: SnapshotSlot) {
        self.snapshot = snapshot
        self.slot = slot
    }
}

/// Which state of a database a connection reads.
enum ReadingView {
    /// The current state of the database.
    case current
    /// A snapshot, and the time at which it expires, in milliseconds of the monotonic clock.
    case snapshot(OpenSnapshot, until: Int64)
    /// The snapshot was closed because of its time limit. Reads fail until the client sends SNAPSHOT CLOSE. Otherwise a
    /// client could mistake current entries for entries of the snapshot.
    case expired
}
