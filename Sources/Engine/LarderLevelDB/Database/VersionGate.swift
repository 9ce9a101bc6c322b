import CLarderLevelDBFiles
import LarderPlatform

/// Blocks reads of one LevelDB briefly while the output of a merge replaces its input.
///
/// LevelDB removes merged tables immediately only if no one reads them, and otherwise not before its next merge is
/// finished. Cursors pin tables for as long as they exist. If the owner of the database requests it, the following
/// happens at the end of a merge:
/// - no new read begins, and reads in progress are waited for;
/// - the iterators of all cursors are closed; each cursor creates a new iterator when it moves;
/// - when LevelDB has determined which files it no longer needs, reads continue.
///
/// This takes as long as the longest read in progress, and some microseconds. Code that holds ``reads`` for reading must
/// not wait for LevelDB's merges, and must not lock ``reads`` again.
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

    /// - Parameter yields: whether cursors release their tables at the end of a merge. Called on LevelDB's thread; it
    ///   must not block.
    init(yields: @escaping @Sendable () -> Bool) { self.yields = yields }

    /// Makes the merges of the database in a directory use this gate.
    func register(_ directory: String) { Self.registry.set(self, for: directory) }
    func unregister(_ directory: String) { Self.registry.set(nil, for: directory) }

    func add(_ slot: IteratorSlot) { lock.withLock { iterators[ObjectIdentifier(slot)] = slot } }
    func remove(_ slot: IteratorSlot) { lock.withLock { iterators[ObjectIdentifier(slot)] = nil } }

    /// Called on LevelDB's thread, without LevelDB's locks.
    fileprivate func shut() {
        guard !isShut, yields() else { return }
        reads.lockForWriting()
        isShut = true
        for slot in lock.withLock({ Array(iterators.values) }) { slot.park() }
    }

    /// Called on the thread that called ``shut()``.
    fileprivate func open() {
        guard isShut else { return }
        isShut = false
        reads.unlock()
    }
}

/// The gates of all open databases by their directories.
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
