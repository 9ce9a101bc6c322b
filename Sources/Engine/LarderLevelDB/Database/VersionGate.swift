import CLarderLevelDBFiles
import LarderPlatform

/// Blocks reads of one LevelDB for the moment in which the output of a merge replaces its input.
///
/// LevelDB removes merged tables at once only if they are not being read, and otherwise not before its next merge is
/// done; cursors pin them for as long as they exist. So, if the owner of the database wants that, at the end of a
/// merge:
/// - no new read begins, and those under way are waited for;
/// - the iterators of all cursors are closed; each cursor creates a new one when it moves;
/// - when LevelDB knows which files it does not need any more, reads continue.
///
/// That takes as long as the longest read under way, and some microseconds. Code that runs with the gate open must not
/// wait for LevelDB's merges, and must not take it twice.
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

    /// Takes part in the merges of the database in a directory.
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

    /// Called on the thread that has called ``shut()``.
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
            VersionGate.tell(String(cString: directory), begins: begins != 0)
        }
    }

    func set(_ gate: VersionGate?, for directory: String) { lock.withLock { gates[directory] = gate } }
    func gate(_ directory: String) -> VersionGate? { lock.withLock { gates[directory] } }
}

extension VersionGate {
    fileprivate static func tell(_ directory: String, begins: Bool) {
        guard let gate = registry.gate(directory) else { return }
        if begins { gate.shut() } else { gate.open() }
    }
}
