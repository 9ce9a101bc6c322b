import LarderPlatform
import LarderVocabulary

/// The leases of the keys of one shard, the callers that wait for these leases, and remembered negative results of
/// origins. In memory only. A value; the shard's lock guards it.
struct LeaseTable {
    /// The exclusive right to refresh one key.
    struct Lease {
        let token: UInt64
        let holder: LeaseHolder
        /// Whether the lease stays valid after its holder (a connection or a handle) has ended.
        let outlives: Bool
        let began: Int64
        let ends: Int64
        /// The last commit unit before the lease was granted.
        let sequence: UInt64
    }

    struct State {
        var lease: Lease?
        var rest: NegativeResult?
        var waiters = WaiterQueue()
        /// The hashes of the tags that the key's entry had when the lease was granted. If one of these tags is purged,
        /// the value being fetched may be outdated.
        var tags: [UInt64] = []

        var isEmpty: Bool { lease == nil && rest == nil && waiters.isEmpty }
    }

    private let context: LeaseContext
    private unowned let database: any DatabaseIdentity
    /// Returns the sequence (number) of the last commit unit.
    private let lastSequence: @Sendable () -> UInt64
    /// Ends a lease of a key of the database, because its holder has ended. Called without locks.
    private let holderEnded: @Sendable (any DatabaseIdentity, _ token: UInt64, Key) -> Void
    private var states: [Key: State] = [:]
    /// The number of keys with a remembered negative result.
    private var negativeCount = 0
    /// The duration of a key's last refresh in milliseconds, by the key's hash.
    private var durations = BoundedTable<Int, Int64>(most: LeaseContext.rememberedMax)
    /// The sequence (number) of the commit unit of the last purge of tags.
    private var tagsPurgedAt: UInt64 = 0

    init(
        _ context: LeaseContext, _ database: any DatabaseIdentity, lastSequence: @escaping @Sendable () -> UInt64,
        holderEnded: @escaping @Sendable (any DatabaseIdentity, _ token: UInt64, Key) -> Void
    ) {
        (self.context, self.database) = (context, database)
        (self.lastSequence, self.holderEnded) = (lastSequence, holderEnded)
    }

    // MARK: Questions

    /// The current time of the monotonic clock, in milliseconds.
    var time: Int64 { context.time.monotonic() }

    /// Returns the state of a key. Drops its lease or negative result if that has ended.
    mutating func state(_ key: Key) -> State {
        guard var state = states[key] else { return State() }
        let now = time
        let isRestOver = state.rest.map { $0.until <= now } ?? false
        let isLeaseOver = state.lease.map { $0.ends <= now } ?? false
        guard isRestOver || isLeaseOver || state.isEmpty else { return state }
        if isRestOver {
            state.rest = nil
            negativeCount -= 1
        }
        if let lease = state.lease, lease.ends <= now {
            context.lost.add()
            end(lease)
            state.lease = nil
        }
        states[key] = state.isEmpty ? nil : state
        return state
    }

    /// Ends leases that have timed out, and grants new ones to waiters.
    mutating func dropEnded() {
        let now = time
        for key in states.filter({ $0.value.lease.map { $0.ends <= now } ?? false }).keys {
            if state(key).rest == nil { handOver(key) }
            dropIfEmpty(key)
        }
    }

    private mutating func dropIfEmpty(_ key: Key) { if states[key]?.isEmpty ?? false { states[key] = nil } }

    /// Returns the duration of the key's last refresh, in milliseconds; 0 if unknown.
    func lastDuration(_ hash: Int) -> Int64 { durations[hash] ?? 0 }

    // MARK: Leases

    /// Grants a lease to a caller. The key must have no lease.
    /// - Parameters:
    ///   - milliseconds: the duration of the lease. If nil, the lease has the default duration, and ends earlier if its
    ///     holder ends.
    ///   - tags: the hashes of the entry's tags.
    /// - Returns: the token of the lease; nil if the holder has ended.
    mutating func grant(
        _ key: Key, _ holder: LeaseHolder, _ milliseconds: Int64?, tags: [UInt64]
    ) throws(LarderError) -> UInt64? {
        guard !isFull else {
            throw LarderError(
                .tooManyLeases,
                "\(LeaseContext.leasesMax) leases are in use, which is the limit; store values, or release leases",
                operation: "fetch", key: key.description)
        }
        guard !holder.isFull else { throw holder.fullError(key) }
        guard let token = give(key, holder, milliseconds) else { return nil }
        states[key]?.tags = tags
        return token
    }

    /// Whether the limit of leases is reached.
    var isFull: Bool { context.leases.read() >= LeaseContext.leasesMax }

    /// - Returns: nil if the holder has ended, or has reached its limit.
    private mutating func give(_ key: Key, _ holder: LeaseHolder, _ milliseconds: Int64?) -> UInt64? {
        // Use a random token, so that no other lease has the same one, even after a restart.
        let token = UInt64.random(in: 1 ... .max)
        let outlives = milliseconds != nil
        let end = { @Sendable [holderEnded, database] in holderEnded(database, token, key) }
        guard holder.add(token, outlives: outlives, end: end) else { return nil }
        let now = time
        let lease = Lease(
            token: token, holder: holder, outlives: outlives, began: now,
            ends: now + (milliseconds ?? LeaseContext.standardMilliseconds), sequence: lastSequence())
        states[key, default: State()].lease = lease
        context.leases.add()
        context.granted.add()
        return token
    }

    private func end(_ lease: Lease) {
        lease.holder.remove(lease.token, outlives: lease.outlives)
        context.leases.add(-1)
    }

    /// Returns whether a lease is valid.
    /// - Parameter purgedAt: the commit unit of the last purge of the value's tags. A lease that was granted before
    ///   that unit is invalid, and is released.
    mutating func isValid(_ key: Key, _ token: UInt64, purgedAt: UInt64 = 0) -> Bool {
        guard let lease = state(key).lease, lease.token == token else { return false }
        guard lease.sequence < purgedAt else { return true }
        _ = release(key, token, .open)
        return false
    }

    /// Returns whether the holder of a lease may report that the origin has no value. If any tag was purged after the
    /// lease was granted, the origin may have the value by now: releases the lease and returns false.
    mutating func isValidForAbsence(_ key: Key, _ token: UInt64) -> Bool { isValid(key, token, purgedAt: tagsPurgedAt) }

    /// Ends a lease without a write.
    /// - Returns: whether the lease was valid.
    mutating func release(_ key: Key, _ token: UInt64, _ release: FetchRelease) -> Bool {
        if case .absent = release, !isValidForAbsence(key, token) { return false }
        var state = state(key)
        guard let lease = state.lease, lease.token == token else { return false }
        end(lease)
        state.lease = nil
        let now = time
        switch release {
        case .open: break
        case .absent(let milliseconds): state.rest = .absent(until: now + milliseconds)
        case .failed(let milliseconds):
            context.failures.add()
            state.rest = .failed(until: now + milliseconds)
        }
        set(key, state)
        if state.rest == nil {
            handOver(key)
        } else {
            wakeAll(key)
            context.givenUp(database, key)
        }
        return true
    }

    /// Ends a lease because its holder has ended.
    mutating func holderEnded(_ token: UInt64, _ key: Key) {
        guard let lease = states[key]?.lease, lease.token == token else { return }
        context.leases.add(-1)
        context.lost.add()
        states[key]?.lease = nil
        handOver(key)
        dropIfEmpty(key)
    }

    /// Grants a lease to the caller that has waited longest.
    mutating func handOver(_ key: Key) {
        while let waiter = states[key]?.waiters.popFirst() {
            unlist(waiter)
            // This cannot exceed the limit of leases, because another lease of the key has just ended.
            waiter.token = give(key, waiter.holder, waiter.leaseMilliseconds)
            waiter.wakeUp()
            if waiter.token != nil { return wakeWaitersWithLateTimers(key) }
        }
        context.givenUp(database, key)
    }

    /// Wakes the remaining waiters whose timers end after the new lease, so that they set earlier timers.
    private func wakeWaitersWithLateTimers(_ key: Key) {
        guard let state = states[key], let ends = state.lease?.ends else { return }
        for waiter in state.waiters.all where waiter.leaseEnds > ends { waiter.wakeUp() }
    }

    // MARK: Waiting

    /// - Parameter leaseEnds: when the caller stops waiting and checks again, on the monotonic clock in milliseconds.
    mutating func add(_ waiter: LeaseWaiter, _ key: Key, leaseEnds: Int64) throws(LarderError) {
        waiter.leaseEnds = leaseEnds
        guard !waiter.isListed else { return }
        guard context.waiters.read() < LeaseContext.waitersMax else {
            throw LarderError(
                .tooManyLeases, "\(LeaseContext.waitersMax) callers are waiting, which is the limit; try again later",
                operation: "fetch", key: key.description)
        }
        context.waiters.add()
        waiter.isListed = true
        states[key, default: State()].waiters.append(waiter)
    }

    /// Removes a waiter. If the waiter was granted a lease, that lease stays valid.
    mutating func remove(_ waiter: LeaseWaiter, _ key: Key) {
        guard waiter.isListed else { return }
        unlist(waiter)
        states[key]?.waiters.noteRemoved()
        dropIfEmpty(key)
    }

    private func unlist(_ waiter: LeaseWaiter) {
        waiter.isListed = false
        context.waiters.add(-1)
    }

    private mutating func wakeAll(_ key: Key) {
        guard let waiters = states[key]?.waiters, !waiters.isEmpty else { return }
        states[key]?.waiters = WaiterQueue()
        for waiter in waiters.all {
            unlist(waiter)
            waiter.wakeUp()
        }
    }

    // MARK: Changes of keys

    /// Updates the lease, the negative result and the waiters of a key that was written or removed.
    mutating func changed(_ bytes: UnsafeRawBufferPointer, _ effect: LeaseEffect, isRemoval: Bool) {
        guard !states.isEmpty, effect != .none else { return }
        let key = Key(bytes)
        guard var state = states[key] else { return }
        state.rest = nil
        if let lease = state.lease {
            if effect == .refreshed { durations[key.hash] = time - lease.began }
            end(lease)
            state.lease = nil
        }
        if case .absent(let until) = effect { state.rest = .absent(until: until) }
        set(key, state)
        if !isRemoval { for waiter in state.waiters.all { waiter.sawWrite = true } }
        if isRemoval, state.rest == nil { handOver(key) } else { wakeAll(key) }
        dropIfEmpty(key)
    }

    /// Updates the leases after all keys with a prefix were removed. An empty prefix means all keys.
    mutating func changed(prefix: [UInt8]) {
        for key in states.keys where key.withBytes({ $0.starts(with: prefix) }) {
            key.withBytes { changed($0, .outdated, isRemoval: true) }
        }
    }

    /// Ends the leases of keys whose entries had one of the purged tags. For all keys, also forgets that the origin had
    /// no value, because the tags of missing values are unknown.
    /// - Parameter sequence: the commit unit of the purge.
    mutating func changed(tags: Set<UInt64>, _ sequence: UInt64) {
        tagsPurgedAt = sequence
        for (key, state) in states {
            if case .absent = state.rest { dropNegativeResult(key) }
            let isOutdated = state.lease != nil && !tags.isDisjoint(with: state.tags)
            if isOutdated, let lease = state.lease {
                end(lease)
                states[key]?.lease = nil
            }
            if isOutdated || states[key]?.rest != state.rest { handOver(key) }
            dropIfEmpty(key)
        }
    }

    private mutating func set(_ key: Key, _ state: State) {
        if state.rest != nil, states[key]?.rest == nil, negativeCount >= LeaseContext.rememberedMax { forgetRests() }
        negativeCount += (state.rest == nil ? 0 : 1) - (states[key]?.rest == nil ? 0 : 1)
        states[key] = state.isEmpty ? nil : state
    }

    /// Forgets negative results to make space for others: those that have ended, and then an eighth of all, so that
    /// the table is not searched again for each of the next ones. The next fetch of such a key asks the origin again.
    private mutating func forgetRests() {
        let now = time
        let kept = LeaseContext.rememberedMax * 7 / 8
        for (key, state) in states where state.rest != nil {
            let isOver = (state.rest?.until ?? 0) <= now
            guard isOver || negativeCount > kept else { continue }
            dropNegativeResult(key)
            dropIfEmpty(key)
        }
    }

    private mutating func dropNegativeResult(_ key: Key) {
        states[key]?.rest = nil
        negativeCount -= 1
    }
}
