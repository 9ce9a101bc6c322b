import LarderEngine
import LarderPlatform

/// What a cache may believe of its origin's answers.
///
/// An *epoch* is a time in which the origin says what changes. What was answered in the present one, and was not said to
/// have changed since the question was sent, may be stored. When it ends, all that the origin gave is stale at once: the
/// entries have a tag, which is purged softly, whatever their number. Keys that are said to have changed are *due*, until the
/// cache has made their entries stale too.
///
/// Thread-safe. The proof for `@unchecked Sendable`: what changes is read and written with the lock held.
final class InvalidationEpoch: @unchecked Sendable {
    /// The present epoch.
    struct Epoch: Hashable {
        /// Nil if the origin does not say what changes, although it should.
        fileprivate var told: UInt64?
        fileprivate var own: UInt64?

        var isBelieved: Bool { told != nil && own != nil }
    }

    /// What was true when a call began, or when a question was sent.
    struct Ticket: Sendable {
        let epoch: Epoch
        /// Grows with each.
        let number: UInt64
        fileprivate let sequence: UInt64
    }

    /// When a key was last said to have changed.
    private struct Change {
        /// By anybody.
        var last: UInt64 = 0
        /// By the program, of which the origin has not said what it includes.
        var demanded: UInt64 = 0
    }

    private let originEpoch: @Sendable () -> UInt64?
    let isTold: Bool
    private let lock = Lock()
    /// Held while the database is made to agree, one caller at a time.
    private let settling = Lock()
    private var told: UInt64?
    private var epochs: UInt64 = 0
    /// What the database agrees with; nil while that changes.
    private var settled: Epoch?
    /// By the sequences in which they were said to have changed.
    private var due: [[UInt8]: UInt64] = [:]
    // What was said while calls were under way, so that they learn of it.
    private var calls = 0
    private var tickets: UInt64 = 0
    /// Those of ``OriginMoment``.
    private var sequence: UInt64 = 0
    private var changes: [[UInt8]: Change] = [:]
    /// What was begun before this sequence counts as changed.
    private var floor: UInt64 = 0
    private static let changesMax = 100_000
    private var writes: [[UInt8]: Int] = [:]

    /// - Parameters:
    ///   - isTold: whether the origin says what changes.
    ///   - epoch: the origin's own.
    init(isTold: Bool, epoch: @escaping @Sendable () -> UInt64?) {
        self.isTold = isTold
        originEpoch = epoch
        if !isTold {
            told = 0
            settled = Epoch(told: 0, own: 0)
        }
    }

    private func epoch(_ own: UInt64?) -> Epoch { Epoch(told: told, own: own) }

    private var own: UInt64? { isTold ? originEpoch() : 0 }

    var epoch: Epoch {
        let own = own
        return lock.withLock { epoch(own) }
    }

    /// Whether the database agrees with what the origin has said of keys, so that what is fresh there may be served.
    func isSettled(_ keys: some Sequence<some CacheKey>) -> Bool {
        let own = own
        return lock.withLock {
            settled == epoch(own) && (due.isEmpty || keys.allSatisfy { due[$0.keyBytes] == nil })
        }
    }

    // MARK: What the origin says

    func begin() {
        lock.withLock {
            epochs += 1
            told = epochs
        }
    }

    /// - Returns: whether changes were told until now.
    @discardableResult
    func lose() -> Bool {
        guard isTold else { return false }
        return lock.withLock {
            defer { told = nil }
            return told != nil
        }
    }

    /// Everything may have changed.
    func loseAll() { lock.withLock { loseAllLocked() } }

    private func loseAllLocked() {
        guard isTold, told != nil else { return }
        epochs += 1
        told = epochs
    }

    /// Keys have changed, and their entries are to be made stale.
    /// - Parameter isTold: whether the origin says so, and not the program.
    /// - Returns: whether nothing was to be done before, so that somebody must begin.
    func changed(_ keys: [[UInt8]], isTold isOrigins: Bool = false) -> Bool {
        lock.withLock {
            note(keys, isDemanded: !isOrigins)
            guard !isTold || due.count + keys.count <= Self.changesMax else {
                loseAllLocked()
                return false
            }
            defer { for key in keys { due[key] = sequence } }
            return due.isEmpty
        }
    }

    /// Keys have changed that nobody has listed: nothing is kept that was asked for before this.
    func changedMany() {
        lock.withLock {
            sequence = OriginMoment.next().number
            floor = sequence
            changes = [:]
        }
    }

    private func note(_ keys: [[UInt8]], isDemanded: Bool = false) {
        sequence = OriginMoment.next().number
        guard calls > 0 else { return }
        if changes.count + keys.count > Self.changesMax {
            floor = sequence
            changes = [:]
            return
        }
        for key in keys {
            changes[key, default: Change()].last = sequence
            if isDemanded { changes[key]?.demanded = sequence }
        }
    }

    // MARK: Calls

    /// How many calls and questions are under way, for tests.
    var callCount: Int { lock.withLock { calls } }

    /// A call begins, or a question to the origin.
    func beginCall() -> Ticket {
        let own = own
        return lock.withLock {
            calls += 1
            return ticket(own)
        }
    }

    private func ticket(_ own: UInt64?) -> Ticket {
        tickets += 1
        return Ticket(epoch: epoch(own), number: tickets, sequence: sequence)
    }

    func endCall() {
        lock.withLock {
            calls -= 1
            if calls == 0 { changes = [:] }
        }
    }

    /// Whether what was answered to a question is still what the origin has, as far as it has said.
    func isGood(_ ticket: Ticket, _ key: [UInt8]) -> Bool {
        let own = own
        return lock.withLock {
            ticket.epoch == epoch(own) && ticket.sequence >= floor && changes[key]?.last ?? 0 <= ticket.sequence
        }
    }

    /// Whether the answer may also be stored. Asks nobody: locks of the database may be held.
    func mayStore(_ ticket: Ticket, _ key: [UInt8]) -> Bool {
        lock.withLock {
            ticket.epoch.isBelieved && ticket.epoch == settled && ticket.sequence >= floor
                && changes[key]?.last ?? 0 <= ticket.sequence && writes[key] == nil
        }
    }

    /// A value is being written.
    func beginWrite(_ keys: [[UInt8]]) -> Ticket {
        let own = own
        return lock.withLock {
            calls += 1
            for key in keys { writes[key, default: 0] += 1 }
            note(keys)
            return ticket(own)
        }
    }

    /// The origin has answered, or failed. What is read from now on is newer.
    /// - Parameter confirmedAt: when the origin said that it has the value, if it did: what it told before is no change of it.
    /// - Returns: what the value that was written is as good as; nil if somebody else wrote one of the keys meanwhile, or a
    ///   change of them was told.
    func endWrite(_ keys: [[UInt8]], _ began: Ticket, _ confirmedAt: OriginMoment? = nil) -> Ticket? {
        lock.withLock {
            var isAlone = began.sequence >= floor
            for key in keys {
                let change = changes[key] ?? Change()
                if change.last > max(began.sequence, confirmedAt?.number ?? 0) || change.demanded > began.sequence {
                    isAlone = false
                }
                guard let count = writes[key] else { continue }
                writes[key] = count == 1 ? nil : count - 1
                if count > 1 { isAlone = false }
            }
            note(keys)
            tickets += 1
            return isAlone ? Ticket(epoch: began.epoch, number: tickets, sequence: sequence) : nil
        }
    }

    // MARK: The database

    /// Makes the database agree with what the origin has said. May block.
    func settle(_ database: Database) throws(LarderError) {
        try settling.withLock { () throws(LarderError) in
            let own = own
            let (now, before, noted) = lock.withLock { () -> (Epoch, Epoch?, [[UInt8]: UInt64]) in
                let now = epoch(own)
                let before = settled
                if before != now { settled = nil }
                return (now, before, due)
            }
            if before != now {
                // In an epoch that was not believed nothing was stored.
                if before.map(\.isBelieved) ?? true {
                    // First: an answer of the former epoch that may just be on its way to the disk is stored before the
                    // purge or not at all. Of a key without an entry the purge does not know that it would get the tag.
                    database.endLeases(prefix: [])
                    try database.purge(tags: [Array(Self.tag.utf8)], soft: true)
                }
                lock.withLock { settled = now }
            }
            guard !noted.isEmpty else { return }
            try Self.makeStale(Array(noted.keys), database)
            lock.withLock {
                for (key, sequence) in noted where due[key] == sequence { due[key] = nil }
            }
        }
    }

    /// What is being fetched for the keys is out of date, and their entries are stale. May block.
    static func makeStale(_ keys: [[UInt8]], _ database: Database) throws(LarderError) {
        let keys = keys.map { Key($0) }
        // First: what is stored behind this was asked for behind it.
        database.endLeases(keys)
        guard database.exists else { return }
        for start in stride(from: 0, to: keys.count, by: 256) {
            let some = Array(keys[start..<min(start + 256, keys.count)])
            try database.commit(some, loading: true) { update in
                for index in some.indices { update.renew(index, .own(update.now)) }
            }
        }
    }

    /// The tag of all entries that an origin gave that says what changes.
    static let tag = "larder:origin"
}
