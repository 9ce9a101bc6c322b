import LarderEngine

/// One of the server's slots for open snapshots. Released with its last reference.
///
/// Thread-safe: immutable.
final class SnapshotSlot: Sendable {
    private let server: ServerState

    /// Nil if all slots are taken.
    init?(_ server: ServerState) {
        self.server = server
        let taken = server.openSnapshots.wrappingAdd(1, ordering: .relaxed).newValue
        // If this initializer returns nil, deinit still runs, and frees the slot.
        guard taken <= server.limits.snapshotsMax else { return nil }
    }

    deinit { server.openSnapshots.add(-1) }
}

/// A snapshot that a connection reads from. It is closed when its last reference is released, possibly by a command
/// that still reads on another thread: an explicit close would have to wait for that command.
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

/// The state of the database that a connection reads.
enum ReadingView {
    /// The current state of the database.
    case current
    /// A snapshot that expires at a time of the monotonic clock.
    case snapshot(OpenSnapshot, until: Int64)
    /// A snapshot that was closed after the time limit. Reads fail until SNAPSHOT CLOSE, so that no client mistakes
    /// current entries for those of the snapshot.
    case expired
}
