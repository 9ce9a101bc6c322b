import Synchronization

/// The keys of the long values that were last written to a LevelDB, and may be in its memory, where a lookup of the key
/// would copy the value. Thread-safe.
final class LongKeys: Sendable {
    /// LevelDB has two memories, each of which is closed by the first batch that exceeds its size, which is 4 MiB
    /// unless a program chooses more.
    private static let countMax = 64

    private let hashes = Mutex<[Int]>([])
    private let isEmpty = Atomic<Bool>(true)

    /// Adds a key by its hash; the oldest are forgotten.
    func add(_ hash: Int) {
        hashes.withLock { hashes in
            if hashes.count == Self.countMax { hashes.removeFirst() }
            hashes.append(hash)
        }
        isEmpty.store(false, ordering: .releasing)
    }

    /// One atomic load while there was none.
    func contains(_ hash: Int) -> Bool {
        !isEmpty.load(ordering: .acquiring) && hashes.withLock { $0.contains(hash) }
    }
}
