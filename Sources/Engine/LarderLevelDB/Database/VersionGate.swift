import CLarderLevelDB
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

    /// The gates of all open databases, by the databases' directories.
    private static let gates = Locked<[String: VersionGate]>([:])
    /// Makes LevelDB notify the gates. Happens once in the process.
    private static let isListening: Void = larder_leveldb_on_merge { directory, begins in
        guard let directory else { return }
        let name = String(cString: directory)
        guard let gate = gates.withLock({ $0[name] }) else { return }
        if begins != 0 { gate.shut() } else { gate.open() }
    }

    /// - Parameter yields: returns whether cursors must release their tables at the end of a merge. Called on LevelDB's
    ///   thread and for each read; must not block.
    init(yields: @escaping @Sendable () -> Bool) { self.yields = yields }

    /// Makes merges of the database in this directory use this gate.
    func register(_ directory: String) {
        _ = Self.isListening
        Self.gates.withLock { $0[directory] = self }
    }

    func unregister(_ directory: String) { Self.gates.withLock { _ = $0.removeValue(forKey: directory) } }

    /// Runs a read of one key. Takes the lock only if merges use this gate at present: if they begin to do so during the
    /// read, LevelDB may remove the tables later than it could.
    @inline(__always)
    func read<Result>(_ body: () -> Result) -> Result { yields() ? reads.withReadLock(body) : body() }

    /// Like ``read(_:)``, but does not wait.
    /// - Returns: nil, without calling `body`, if the lock is held for writing.
    @inline(__always)
    func readUnlessBusy<Result>(_ body: () -> Result) -> Result? {
        yields() ? reads.withReadLockUnlessBusy(body) : body()
    }

    func add(_ slot: IteratorSlot) { lock.withLock { iterators[ObjectIdentifier(slot)] = slot } }
    func remove(_ slot: IteratorSlot) { lock.withLock { iterators[ObjectIdentifier(slot)] = nil } }

    /// Blocks reads and closes all iterators, if the owner requests it. Called on LevelDB's thread, without LevelDB's
    /// locks.
    private func shut() {
        guard !isShut, yields() else { return }
        reads.lockForWriting()
        isShut = true
        for slot in lock.withLock({ Array(iterators.values) }) { slot.park() }
    }

    /// Lets reads continue. Called on the thread that called ``shut()``.
    private func open() {
        guard isShut else { return }
        isShut = false
        reads.unlock()
    }
}

/// The holder of a cursor's LevelDB iterator. ``VersionGate`` may close the iterator while the cursor is at an entry;
/// the current entry is then kept here, and the cursor creates a new iterator when it moves.
///
/// The cursor's owner uses the slot with the gate's lock held for reading; ``VersionGate`` uses it with the lock held
/// for writing.
@usableFromInline
final class IteratorSlot {
    @usableFromInline var handle: OpaquePointer?
    /// The entry at which the iterator was when it was closed; nil if it was at no entry, or the cursor has moved
    /// since.
    @usableFromInline var place: (key: [UInt8], value: [UInt8])?

    init(_ handle: OpaquePointer?) { self.handle = handle }

    func park() {
        guard let handle else { return }
        if leveldb_iter_valid(handle) != 0 { place = ([UInt8](Self.key(handle)), [UInt8](Self.value(handle))) }
        leveldb_iter_destroy(handle)
        self.handle = nil
    }

    @usableFromInline
    static func key(_ handle: OpaquePointer?) -> UnsafeRawBufferPointer {
        var count = 0
        let start = leveldb_iter_key(handle, &count)
        return UnsafeRawBufferPointer(start: start, count: count)
    }

    @usableFromInline
    static func value(_ handle: OpaquePointer?) -> UnsafeRawBufferPointer {
        var count = 0
        let start = leveldb_iter_value(handle, &count)
        return UnsafeRawBufferPointer(start: start, count: count)
    }
}
