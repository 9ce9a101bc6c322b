import LarderEngine

/// One of the server's slots for open snapshots; free again when its last reference is released.
///
/// Thread-safe: constant.
final class SnapshotSlot: Sendable {
    private let server: ServerState

    /// Nil if all slots are taken.
    init?(_ server: ServerState) {
        self.server = server
        let taken = server.openSnapshots.wrappingAdd(1, ordering: .relaxed).newValue
        // A failed initializer still runs deinit, which frees the slot.
        guard taken <= server.limits.snapshotsMax else { return nil }
    }

    deinit { server.openSnapshots.add(-1) }
}

/// A snapshot that a connection reads from. It is closed when its last reference is released. That may be the reference
/// of a command that still reads on another thread; a call that closes it would have to wait for the store.
///
/// Thread-safe: constant.
final class OpenSnapshot: Sendable {
    let snapshot: Snapshot
    private let slot: SnapshotSlot

    init(_ snapshot: Snapshot, _ slot: SnapshotSlot) {
        self.snapshot = snapshot
        self.slot = slot
    }
}

/// What a connection's reads see.
enum ReadingView {
    /// The database as it is.
    case current
    /// A snapshot that ends at an instant of the monotonic clock.
    case snapshot(OpenSnapshot, until: Int64)
    /// A snapshot that was open for too long and was closed. Reads answer with an error until SNAPSHOT CLOSE, so that
    /// no client mistakes the present for the past.
    case expired
}
