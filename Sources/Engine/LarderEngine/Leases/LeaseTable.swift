import Synchronization

/// The leases of a shard's keys, those who wait for them, and what origins answered without a value. In memory only.
/// A value; the shard's lock guards it.
struct LeaseTable {
    /// The right and duty to refresh one key.
    struct Lease {
        let token: UInt64
        let holder: LeaseHolder
        /// Whether it continues when its holder is gone.
        let outlives: Bool
        let began: Int64
        let ends: Int64
        /// The last commit unit before the lease was given.
        let sequence: UInt64
    }

    struct State {
        var lease: Lease?
        var rest: OriginRest?
        var waiters = WaiterQueue()
        /// The hashes of the tags that the key's entry had when a lease was given to who asked. A purge of one of them
        /// may be meant for what is being fetched.
        var tags: [UInt64] = []

        var isEmpty: Bool { lease == nil && rest == nil && waiters.isEmpty }
    }

    private let context: LeaseContext
    private unowned let owner: any LeaseOwner
    private var states: [Key: State] = [:]
    /// How many of them have a rest.
    private var restCount = 0
    /// How long the last refresh of a key took, in milliseconds, by the key's hash.
    private var durations: [Int: Int64] = [:]
    /// The sequence of the last purge of tags.
    private var tagsPurgedAt: UInt64 = 0

    init(_ context: LeaseContext, _ owner: any LeaseOwner) {
        self.context = context
        self.owner = owner
    }

    // MARK: Questions

    /// The present instant of the monotonic clock, in milliseconds.
    var time: Int64 { context.time.monotonic() }

    /// The state of a key: a lease that is good, a rest that is not over.
    mutating func state(_ key: Key) -> State {
        guard var state = states[key] else { return State() }
        let now = time
        let isRestOver = state.rest.map { $0.until <= now } ?? false
        let isLeaseOver = state.lease.map { $0.ends <= now } ?? false
        guard isRestOver || isLeaseOver || state.isEmpty else { return state }
        if isRestOver {
            state.rest = nil
            restCount -= 1
        }
        if let lease = state.lease, lease.ends <= now {
            context.lost.add()
            end(lease)
            state.lease = nil
        }
        states[key] = state.isEmpty ? nil : state
        return state
    }

    /// Drops leases whose time is over, and hands them on.
    mutating func dropEnded() {
        let now = time
        for key in states.filter({ $0.value.lease.map { $0.ends <= now } ?? false }).keys {
            if state(key).rest == nil { handOver(key) }
            dropIfEmpty(key)
        }
    }

    private mutating func dropIfEmpty(_ key: Key) { if states[key]?.isEmpty ?? false { states[key] = nil } }

    /// How long the last refresh took, in milliseconds; 0 if unknown.
    func lastDuration(_ hash: Int) -> Int64 { durations[hash] ?? 0 }

    // MARK: Leases

    /// Gives a lease to a caller. There must be none.
    /// - Parameters:
    ///   - milliseconds: nil: the standard time, and it ends with its holder.
    ///   - tags: the hashes of the entry's tags.
    /// - Returns: its token; nil if the holder is gone.
    mutating func grant(
        _ key: Key, _ holder: LeaseHolder, _ milliseconds: Int64?, tags: [UInt64]
    ) throws(LarderError) -> UInt64? {
        guard !isFull else {
            throw LarderError(
                .tooManyLeases, "\(LeaseContext.leasesMax) leases are in use, no more are allowed; store or release",
                operation: "fetch", key: key.description)
        }
        guard !holder.isFull else { throw holder.fullError(key) }
        guard let token = give(key, holder, milliseconds) else { return nil }
        states[key]?.tags = tags
        return token
    }

    /// Whether no more leases are given.
    var isFull: Bool { context.leases.read() >= LeaseContext.leasesMax }

    /// - Returns: nil if the holder is gone, or may have no more.
    private mutating func give(_ key: Key, _ holder: LeaseHolder, _ milliseconds: Int64?) -> UInt64? {
        // No other state of any key ever has the same one, also after a restart.
        let token = UInt64.random(in: 1 ... .max)
        let outlives = milliseconds != nil
        guard holder.add(token, key, owner, outlives: outlives) else { return nil }
        let now = time
        let lease = Lease(
            token: token, holder: holder, outlives: outlives, began: now,
            ends: now + (milliseconds ?? LeaseContext.standardMilliseconds), sequence: owner.lastSequence)
        states[key, default: State()].lease = lease
        context.leases.add()
        context.granted.add()
        return token
    }

    private func end(_ lease: Lease) {
        lease.holder.remove(lease.token, outlives: lease.outlives)
        context.leases.add(-1)
    }

    /// Whether a lease is good.
    /// - Parameter purgedAt: the last purge of the value's tags. If the lease is older, it is no longer good, and given up.
    mutating func isGood(_ key: Key, _ token: UInt64, purgedAt: UInt64 = 0) -> Bool {
        guard let lease = state(key).lease, lease.token == token else { return false }
        guard lease.sequence < purgedAt else { return true }
        _ = release(key, token, .open)
        return false
    }

    /// Whether the holder of a lease may say that the origin has no value. Not if tags were purged since the lease was
    /// given: what was missing may have come with the change for which they were. Then the lease is given up.
    mutating func isGoodForAbsence(_ key: Key, _ token: UInt64) -> Bool {
        isGood(key, token, purgedAt: tagsPurgedAt)
    }

    /// Ends a lease without a write.
    /// - Returns: whether it was good.
    mutating func release(_ key: Key, _ token: UInt64, _ release: LeaseRelease) -> Bool {
        if case .absent = release, !isGoodForAbsence(key, token) { return false }
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
            context.givenUp(owner, key)
        }
        return true
    }

    /// A holder is gone.
    mutating func holderEnded(_ token: UInt64, _ key: Key) {
        guard let lease = states[key]?.lease, lease.token == token else { return }
        context.leases.add(-1)
        context.lost.add()
        states[key]?.lease = nil
        handOver(key)
        dropIfEmpty(key)
    }

    /// Gives the lease to who has waited longest.
    mutating func handOver(_ key: Key) {
        while let waiter = states[key]?.waiters.popFirst() {
            unlist(waiter)
            // It is beneath the limit: another lease of the key has just ended.
            waiter.token = give(key, waiter.holder, waiter.leaseMilliseconds)
            waiter.wakeUp()
            if waiter.token != nil { return wakeWhoWouldBeLate(key) }
        }
        context.givenUp(owner, key)
    }

    /// Those who still wait look again when the lease ends: also if it ends earlier than the one they were told of.
    private func wakeWhoWouldBeLate(_ key: Key) {
        guard let state = states[key], let ends = state.lease?.ends else { return }
        for waiter in state.waiters.all where waiter.leaseEnds > ends { waiter.wakeUp() }
    }

    // MARK: Waiting

    /// - Parameter leaseEnds: when the caller asks again if nobody wakes it.
    mutating func add(_ waiter: LeaseWaiter, _ key: Key, leaseEnds: Int64) throws(LarderError) {
        waiter.leaseEnds = leaseEnds
        guard !waiter.isListed else { return }
        guard context.waiters.read() < LeaseContext.waitersMax else {
            throw LarderError(
                .tooManyLeases, "\(LeaseContext.waitersMax) callers wait for values, no more are allowed; ask later",
                operation: "fetch", key: key.description)
        }
        context.waiters.add()
        waiter.isListed = true
        states[key, default: State()].waiters.append(waiter)
    }

    /// A waiter is gone. A lease that it got belongs to its holder.
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

    // MARK: What happens to keys

    /// A key was written or removed.
    mutating func changed(_ bytes: UnsafeRawBufferPointer, _ effect: LeaseEffect, isRemoval: Bool) {
        guard !states.isEmpty, effect != .none else { return }
        let key = Key(bytes)
        guard var state = states[key] else { return }
        state.rest = nil
        if let lease = state.lease {
            if effect == .refreshed { remember(key.hash, time - lease.began) }
            end(lease)
            state.lease = nil
        }
        if case .absent(let until) = effect { state.rest = .absent(until: until) }
        set(key, state)
        if !isRemoval { for waiter in state.waiters.all { waiter.sawWrite = true } }
        if isRemoval, state.rest == nil { handOver(key) } else { wakeAll(key) }
        dropIfEmpty(key)
    }

    /// All keys with a prefix were removed.
    mutating func changed(prefix: [UInt8]) {
        for key in states.keys where key.withBytes({ $0.starts(with: prefix) }) {
            key.withBytes { changed($0, .outdated, isRemoval: true) }
        }
    }

    /// Tags were purged: what is being fetched for keys whose entries had one of them is out of date. So is every
    /// remembered absence, because nobody knows of what the missing value would have been made.
    /// - Parameter sequence: of the purge.
    mutating func changed(tags: Set<UInt64>, _ sequence: UInt64) {
        tagsPurgedAt = sequence
        for (key, state) in states {
            if case .absent = state.rest { endRest(key) }
            let isOutdated = state.lease != nil && !tags.isDisjoint(with: state.tags)
            if isOutdated, let lease = state.lease {
                end(lease)
                states[key]?.lease = nil
            }
            if isOutdated || states[key]?.rest != state.rest { handOver(key) }
            dropIfEmpty(key)
        }
    }

    /// All keys were removed.
    mutating func changedAll() {
        for (key, state) in states {
            if let lease = state.lease { end(lease) }
            states[key]?.lease = nil
            if state.rest != nil { endRest(key) }
            handOver(key)
            dropIfEmpty(key)
        }
    }

    private mutating func set(_ key: Key, _ state: State) {
        if state.rest != nil, states[key]?.rest == nil, restCount >= LeaseContext.rememberedMax { forgetRests() }
        restCount += (state.rest == nil ? 0 : 1) - (states[key]?.rest == nil ? 0 : 1)
        states[key] = state.isEmpty ? nil : state
    }

    /// Makes room for another rest: the origins of forgotten ones are asked again.
    private mutating func forgetRests() {
        let now = time
        for (key, state) in states where state.rest != nil {
            let isOver = (state.rest?.until ?? 0) <= now
            guard isOver || restCount >= LeaseContext.rememberedMax else { continue }
            endRest(key)
            dropIfEmpty(key)
        }
    }

    private mutating func endRest(_ key: Key) {
        states[key]?.rest = nil
        restCount -= 1
    }

    private mutating func remember(_ hash: Int, _ milliseconds: Int64) {
        if durations.count >= LeaseContext.rememberedMax, durations[hash] == nil { durations.removeAll() }
        durations[hash] = milliseconds
    }
}
