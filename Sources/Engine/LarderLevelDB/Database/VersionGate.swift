import CLarderLevelDBFiles
import LarderPlatform

/// Briefly blocks the reads of one database at the end of a merge, so that LevelDB can remove the tables that were
/// merged.
///
/// If nothing is reading the old tables at the end of a merge, LevelDB removes them immediately. Otherwise it removes
/// them at the end of its next merge or later. A cursor reads its tables for as long as it exists. If the owner of the
/// database requests it (`yields`), the following happens at the end of a merge:
/// 1. The gate blocks new reads, and waits for reads in progress.
/// 2. It closes the iterators of all cursors. Each cursor creates a new iterator when it moves.
/// 3. When LevelDB has determined which files it no longer needs, the gate lets reads continue.
///
/// This takes some microseconds longer than the longest read in progress. Code that holds ``reads`` for reading must
/// not wait for LevelDB's merges or lock ``reads`` again, because both could deadlock.
///
/// Thread-safe. `@unchecked Sendable`: `iterators` is guarded by `lock`; `isShut` is used by LevelDB's thread alone;
/// the rest is constant.
@usableFromInline
final class VersionGate: @unchecked Sendable {
    @usableFromInline let reads = ReadWriteLock()
    private let yields: @Sendable () -> Bool
    private let lock = Lock()
    private var iterators: [ObjectIdentifier: IteratorSlot] = [:]
    private var isShut = false

    private static let registry = GateRegistry()

    /// - Parameter yields: returns whether cursors must release their tables at the end of a merge. Called on LevelDB's
    ///   thread; must not block.
    init(yields: @escaping @Sendable () -> Bool) { self.yields = yields }

    /// Makes merges of the database in this directory use this gate.
    func register(_ directory: String) { Self.registry.set(self, for: directory) }
    func unregister(_ directory: String) { Self.registry.set(nil, for: directory) }

    func add(_ slot: IteratorSlot) { lock.withLock { iterators[ObjectIdentifier(slot)] = slot } }
    func remove(_ slot: IteratorSlot) { lock.withLock { iterators[ObjectIdentifier(slot)] = nil } }

    /// Blocks reads and closes all iterators, if the owner requests it. Called on LevelDB's thread, without LevelDB's
    /// locks.
    fileprivate func shut() {
        guard !isShut, yields() else { return }
        reads.lockForWriting()
        isShut = true
        for slot in lock.withLock({ Array(iterators.values) }) { slot.park() }
    }

    /// Lets reads continue. Called on the thread that called ``shut()``.
    fileprivate func open() {
        guard isShut else { return }
        isShut = false
        reads.unlock()
    }
}

/// The gates of all open databases, by the databases' directories.
///
/// Thread-safe. `@unchecked Sendable`: `gates` is guarded by `lock`.
private final class GateRegistry: @unchecked Sendable {
    private let lock = Lock()
    private var gates: [String: VersionGate] = [:]

    init() {
        larder_leveldb_on_merge { directory, begins in
            guard let directory else { return }
            VersionGate.notify(String(cString: directory), begins: begins != 0)
        }
    }

    func set(_ gate: VersionGate?, for directory: String) { lock.withLock { gates[directory] = gate } }
    func gate(_ directory: String) -> VersionGate? { lock.withLock { gates[directory] } }
}

extension VersionGate {
    fileprivate static func notify(_ directory: String, begins: Bool) {
        guard let gate = registry.gate(directory) else { return }
        if begins { gate.shut() } else { gate.open() }
    }
}
