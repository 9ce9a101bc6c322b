import Synchronization

/// The bytes of what is never evicted, although it is in databases: writes that wait to be brought elsewhere. They take at
/// most half of what the disk may have, so that checkpoints, which the removal of such writes needs too, find something to
/// evict.
///
/// Thread-safe.
package final class HeldBytes: Sendable {
    private let count = Atomic<Int>(0)
    private let disk: DiskBudget

    init(_ disk: DiskBudget) { self.disk = disk }

    package func add(_ bytes: Int) { count.wrappingAdd(bytes, ordering: .relaxed) }

    /// The most that there may be; nil without a limit of the disk.
    package var most: Int? { disk.boundBytes.map { $0 / 2 } }

    /// Whether so many more bytes have room. Those who ask at the same moment may go beyond it together.
    package func hasRoom(for bytes: Int) -> Bool {
        most.map { count.load(ordering: .relaxed) + bytes <= $0 } ?? true
    }
}
