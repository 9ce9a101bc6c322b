import Synchronization

/// The keys of the long values that were last written to a LevelDB. These values may still be in LevelDB's memory,
/// where a lookup of the key would copy the value. Thread-safe.
final class LongKeys: Sendable {
    /// The maximum number of keys. LevelDB's memory never has more long values: it has two memory tables, and the first
    /// batch that exceeds the size of a memory table closes it. The size is 4 MiB unless a program sets another one.
    private static let countMax = 64

    private let hashes = Mutex<[Int]>([])
    private let isEmpty = Atomic<Bool>(true)

    /// Adds the hash of a key, and forgets the oldest if there are too many.
    func add(_ hash: Int) {
        hashes.withLock { hashes in
            if hashes.count == Self.countMax { hashes.removeFirst() }
            hashes.append(hash)
        }
        isEmpty.store(false, ordering: .releasing)
    }

    /// Whether a key with this hash was added. One atomic load if none ever was.
    func contains(_ hash: Int) -> Bool {
        !isEmpty.load(ordering: .acquiring) && hashes.withLock { $0.contains(hash) }
    }
}
