import Synchronization

/// The hashes of the keys whose long values were most recently written to a LevelDB. These values may still be in
/// LevelDB's memory table. Looking up such a key there would copy the whole value. Thread-safe.
final class LongKeys: Sendable {
    /// The maximum number of keys. LevelDB's memory cannot have more long values: it has two memory tables, and a table
    /// accepts no more batches once it has exceeded its size (4 MiB unless a program sets another size).
    private static let countMax = 64

    private let hashes = Mutex<[Int]>([])
    private let isEmpty = Atomic<Bool>(true)

    /// Adds the hash of a key, and removes the oldest hash if there are too many.
    func add(_ hash: Int) {
        hashes.withLock { hashes in
            if hashes.count == Self.countMax { hashes.removeFirst() }
            hashes.append(hash)
        }
        isEmpty.store(false, ordering: .releasing)
    }

    /// Whether a key with this hash was added. Costs one atomic load if no key was ever added.
    func contains(_ hash: Int) -> Bool {
        !isEmpty.load(ordering: .acquiring) && hashes.withLock { $0.contains(hash) }
    }
}
