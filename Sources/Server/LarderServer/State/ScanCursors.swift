import LarderPlatform

/// The cursors that SCAN returns. Each is a number that identifies the last key that SCAN has returned. All connections
/// can use a cursor. If there are too many cursors, the oldest are removed.
///
/// `@unchecked Sendable`: the state is guarded by `lock`.
final class ScanCursors: @unchecked Sendable {
    private struct Cursor {
        let database: String
        let key: [UInt8]
    }

    private let lock = Lock()
    private var cursors: BoundedTable<UInt64, Cursor>
    /// Starts at a random number: cursors from earlier runs must not be mistaken for current cursors.
    private var next = UInt64.random(in: 1..<(1 << 48))

    init(most: Int) { cursors = BoundedTable(most: most) }

    func add(_ key: [UInt8], database: String) -> UInt64 {
        lock.withLock {
            defer { next += 1 }
            cursors[next] = Cursor(database: database, key: key)
            return next
        }
    }

    func find(_ number: UInt64, database: String) -> [UInt8]? {
        lock.withLock { cursors[number].flatMap { $0.database == database ? $0.key : nil } }
    }
}
