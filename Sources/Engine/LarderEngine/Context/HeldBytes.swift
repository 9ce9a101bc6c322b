import Synchronization

/// The bytes of pending outbox writes (writes still to be sent to an origin), which are never evicted. They take at
/// most half of the disk limit, so that a checkpoint always finds other entries to evict. Without checkpoints, not even
/// completed outbox writes could be removed.
///
/// Thread-safe.
package final class HeldBytes: Sendable {
    private let count = Atomic<Int>(0)
    private let disk: DiskBudget

    init(_ disk: DiskBudget) { self.disk = disk }

    package func add(_ bytes: Int) { count.wrappingAdd(bytes, ordering: .relaxed) }

    /// The maximum number of bytes; nil without a disk limit.
    package var most: Int? { disk.boundBytes.map { $0 / 2 } }

    /// Whether there is space for `bytes` more. Concurrent callers may exceed the limit together.
    package func hasRoom(for bytes: Int) -> Bool {
        most.map { count.load(ordering: .relaxed) + bytes <= $0 } ?? true
    }
}
