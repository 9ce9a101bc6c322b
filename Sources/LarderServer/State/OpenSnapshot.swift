import LarderEngine

/// One of the places for open snapshots that the server has; free again when the last reference goes.
///
/// Thread-safe: constant.
final class SnapshotSlot: Sendable {
    private let server: ServerState

    /// Nil when all are taken.
    init?(_ server: ServerState) {
        self.server = server
        let taken = server.openSnapshots.wrappingAdd(1, ordering: .relaxed).newValue
        // A failed initializer still runs deinit, which gives the place back.
        guard taken <= server.limits.snapshotsMax else { return nil }
    }

    deinit { server.openSnapshots.add(-1) }
}

/// A snapshot that a connection reads from. It is closed when the last reference goes, which may be a command's that is
/// still reading on another thread: closing it by a call would wait for the store.
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
    /// A snapshot, until an instant of the monotonic clock.
    case snapshot(OpenSnapshot, until: Int64)
    /// A snapshot that was open for too long and was closed. Reads answer with an error until SNAPSHOT CLOSE, so that
    /// nobody takes the present for the past.
    case expired
}
