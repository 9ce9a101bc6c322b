import LarderEngine
import LarderPlatform
import Synchronization

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

    init(_ snapshot: Snapshot, _ slot: SnapshotSlot) { (self.snapshot, self.slot) = (snapshot, slot) }
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

/// The cursors that SCAN returns. Each is a number that identifies the last key that SCAN has returned. All connections
/// can use a cursor. If there are too many cursors, the oldest are removed. Thread-safe.
final class ScanCursors: Sendable {
    private let state: Locked<(cursors: BoundedTable<UInt64, (database: String, key: [UInt8])>, next: UInt64)>

    init(most: Int) {
        // Start at a random number: cursors from earlier runs must not be mistaken for current cursors.
        state = Locked((cursors: BoundedTable(most: most), next: UInt64.random(in: 1..<(1 << 48))))
    }

    func add(_ key: [UInt8], database: String) -> UInt64 {
        state.withLock { state in
            defer { state.next += 1 }
            state.cursors[state.next] = (database, key)
            return state.next
        }
    }

    func find(_ number: UInt64, database: String) -> [UInt8]? {
        state.withLock { $0.cursors[number].flatMap { $0.database == database ? $0.key : nil } }
    }
}
