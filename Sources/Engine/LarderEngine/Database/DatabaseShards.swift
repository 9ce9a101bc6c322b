/// The shards of a database: its entries in memory, and the locks that guard them and the database's state. Writers of
/// the state hold all locks, readers at least one. Several locks are taken in the order of their indices.
struct DatabaseShards: ~Copyable {
    let all: [Shard]
    private let unmanaged: UnsafeMutablePointer<Unmanaged<Shard>>

    init(budget: MemoryBudget, disk: DiskBudget, pinnedBytesMin: Int) {
        all = (0..<Shard.count).map { _ in Shard(budget: budget, disk: disk, pinnedBytesMin: pinnedBytesMin) }
        unmanaged = .allocate(capacity: Shard.count)
        for index in 0..<Shard.count { (unmanaged + index).initialize(to: Unmanaged.passUnretained(all[index])) }
    }

    deinit { unmanaged.deallocate() }

    subscript(index: Int) -> Shard { all[index] }
    subscript(key: Key) -> Shard { all[Shard.index(key.hash)] }

    /// Runs `body` on the shard of a hash, without counting references: the shards live as long as this value.
    @inline(__always)
    func with<Result>(_ hash: Int, _ body: (Shard) -> Result) -> Result {
        unmanaged[Shard.index(hash)]._withUnsafeGuaranteedRef(body)
    }

    /// Like ``with(_:_:)``, with the shard's lock held.
    @inline(__always)
    func withLocked<Result>(_ hash: Int, _ body: (Shard) -> Result) -> Result {
        with(hash) { shard in
            shard.lock.lock()
            defer { shard.lock.unlock() }
            return body(shard)
        }
    }

    /// Like ``with(_:_:)``, with the shard's lock held.
    @inline(__always)
    func with<Result>(_ hash: Int, areLocked: Bool, _ body: (Shard) -> Result) -> Result {
        areLocked ? with(hash, body) : withLocked(hash, body)
    }

    /// Returns the shard of a hash without retaining it: the shard lives as long as this value.
    func unmanaged(_ hash: Int) -> Unmanaged<Shard> { unmanaged[Shard.index(hash)] }

    // MARK: Locks

    func lockAll() { lock(Self.everything) }
    func unlockAll() { unlock(Self.everything) }

    /// Runs `body` with all locks held.
    func withAllLocked<Result, Failure: Error>(_ body: () throws(Failure) -> Result) throws(Failure) -> Result {
        lockAll()
        defer { unlockAll() }
        return try body()
    }

    /// Runs `body` with one shard's lock held, which is enough to read the state.
    func withOneLocked<Result>(_ body: () -> Result) -> Result { all[0].lock.withLock(body) }

    static var everything: UInt32 { UInt32.max >> UInt32(UInt32.bitWidth - Shard.count) }

    static func bit(_ hash: Int) -> UInt32 { 1 << UInt32(Shard.index(hash)) }

    func lock(_ set: UInt32) { forEach(in: set) { $0.lock.lock() } }
    func unlock(_ set: UInt32) { forEach(in: set) { $0.lock.unlock() } }

    @inline(__always)
    func forEach(in set: UInt32, _ body: (Shard) -> Void) {
        var rest = set
        while rest != 0 {
            unmanaged[rest.trailingZeroBitCount]._withUnsafeGuaranteedRef(body)
            rest &= rest - 1
        }
    }

    /// For loops over entries: prefetches into the CPU's caches the entry 8 positions ahead, and the table slot of the
    /// entry 16 positions ahead. Called with the locks of their shards held.
    /// - Parameters:
    ///   - count: the number of entries.
    ///   - hash: returns the hash of the key at a position.
    @inline(__always)
    func prefetch(after position: Int, of count: Int, hash: (Int) -> Int) {
        if position + 16 < count {
            let hash = hash(position + 16)
            with(hash) { $0.table.prefetchSlot(hash) }
        }
        if position + 8 < count {
            let hash = hash(position + 8)
            with(hash) { $0.table.prefetchEntry(hash) }
        }
    }

    /// Sums a count over the shards, locking one at a time.
    func sum(_ count: (EntryTable) -> Int) -> Int {
        all.reduce(0) { sum, shard in sum + shard.lock.withLock { count(shard.table) } }
    }
}
