import LarderPlatform

/// Runs the steps of the eviction, and records the position that it has reached in each store. Each step evicts entries
/// from the next key range of a store. After the last range of a store, a new round begins.
///
/// Not thread-safe: the owner runs one step at a time.
struct EvictionRounds {
    enum Progress { case some, none, nothingLeft }

    /// The round that is under way in a store.
    private struct Round {
        /// The first key of the next range, as LevelDB stores it.
        var hand: [UInt8] = [KeyKind.record]
        var hasRemoved = false
        /// Whether the round skips ranges with little to evict. If it then removes nothing, the next round does not
        /// skip any range.
        var skipsPoorRanges = true
        /// Whether the last round skipped no range and still removed nothing.
        var isExhausted = false
        /// The index of the next part of the keys to merge: see ``EpochStore/compact(part:)``.
        var part = 0
    }

    private typealias Candidate = (database: Database, store: EpochStore, bytes: Int)

    private let context: EngineContext
    private var rounds: [ObjectIdentifier: Round] = [:]
    private var sample: EvictionSampler.Result?
    private var sampledSteps = 0
    /// Limits the log line "snapshots of database … were ended" to one a minute for each database.
    private var snapshotWarningRates: [String: LineRate] = [:]
    private static let quietMilliseconds: Int64 = 60_000
    private var random = SplitMix(seed: 0x4C61_7264_6572)

    /// The share of the bytes that a round evicts.
    static let share = 0.4
    /// The number of steps, and the time in milliseconds, after which a new sample is taken.
    private static let sampleSteps = 16
    private static let sampleMilliseconds: Int64 = 10_000
    /// The minimum number of bytes of removed entries that justifies a merge.
    private static let deadBytesMin = 1 << 20

    /// A step that is not urgent evicts nothing if the evictable stores together have less than a 64th of the excess.
    private static let helpfulPart = 64

    init(context: EngineContext) { self.context = context }

    /// Runs one step of the eviction for a disk limit that is exceeded by `bytes`.
    /// - Parameter isUrgent: whether a caller waits for space. If so, and no other store has anything to evict, the
    ///   step invalidates snapshots that keep LevelDB from freeing space.
    mutating func step(
        _ limit: EvictionLimit, _ databases: [Database], over bytes: Int, isUrgent: Bool
    ) throws(LarderError) -> Progress {
        if context.disposalQueue.hasWork {
            let before = limit.measure()
            context.disposalQueue.clear { context.report($0, $1) }
            if limit.measure() < before { return .some }
        }
        if limit.database == nil { DamagedFiles.enforceCap(context.larder) }
        let isSuspended = databases.contains { $0.durableState.store.map { $0.isSuspended && !$0.isFrozen } ?? false }
        if context.larder.disk.isShort(isSuspended: isSuspended), try removeTables(databases, over: bytes) != nil {
            return .some
        }
        let stores = candidates(databases)
        if limit.database == nil {
            let present = Set(stores.map { ObjectIdentifier($0.store) })
            rounds = rounds.filter { present.contains($0.key) }
        }
        var open = stores.filter { !$0.store.isPinned && !(rounds[ObjectIdentifier($0.store)]?.isExhausted ?? false) }
        if open.isEmpty, isUrgent {
            open = stores.filter { $0.store.isPinned }
            for (database, store, _) in open {
                let now = context.time.monotonic()
                let skipped = snapshotWarningRates[
                    database.name, default: LineRate(milliseconds: Self.quietMilliseconds)
                ]
                .line(at: now)
                context.report(
                    skipped == nil ? .debug : .warning,
                    "snapshots of database '\(database.name)' were ended, because they keep evicted entries on the disk"
                        + LineRate.rest(skipped ?? 0, "times"), database: database.name)
                store.endViews()
            }
        }
        // If these stores are too small to matter, something else uses the space.
        if !isUrgent, open.reduce(0, { $0 + $1.bytes }) < bytes / Self.helpfulPart { open = [] }
        guard let chosen = choose(open) else {
            // Begin new rounds the next time, because there may be something to evict by then.
            for store in stores { rounds[ObjectIdentifier(store.store)] = nil }
            return .nothingLeft
        }
        if let progress = try giveBack(chosen) { return progress }
        return try evict(chosen, stores, limit.marks.rangeBytes, wanted: max(limit.bytes / 8, bytes))
    }

    /// Removes whole tables on a full file system. This needs no free space, and works even in stores that accept no
    /// writes.
    /// - Returns: the increase in free space before LevelDB was opened again; nil if there is nothing to remove.
    mutating func removeTables(_ databases: [Database], over bytes: Int) throws(LarderError) -> Int? {
        var stores: [Candidate] = databases.compactMap { database in
            guard !DatabaseName.isKept(database.name), let store = database.durableState.store else { return nil }
            return (database, store, max(1, FileSystem.space(store.path)))
        }
        while let chosen = choose(stores) {
            let removal = TableRemoval(database: chosen.database, store: chosen.store, wantedBytes: bytes)
            let outcome = try removal.run(now: context.time.unnoticed())
            if outcome.seenBytes > 0 {
                // Restart the round of this store, because its tables have changed. Restart it only here: a round that
                // restarts at each step never ends.
                rounds[ObjectIdentifier(chosen.store)] = nil
                context.report(
                    .warning,
                    "the file system is full: evicted \(outcome.evicted) entries of database "
                        + "'\(chosen.database.name)', \(outcome.seenBytes) bytes of tables")
                return outcome.freedBytes
            }
            stores.removeAll { $0.store === chosen.store }
        }
        return nil
    }

    private func candidates(_ databases: [Database]) -> [Candidate] {
        databases.compactMap { database in
            if database.isUnopened { _ = try? database.prepareUnlessBusy() }
            guard let store = database.durableState.store, store.isMade, !store.isFrozen, !store.isSuspended,
                store.ending == .none
            else { return nil }
            return (database, store, max(1, FileSystem.space(store.path)))
        }
    }

    /// Chooses a store at random, with a probability proportional to its size.
    private mutating func choose(_ candidates: [Candidate]) -> Candidate? {
        guard !candidates.isEmpty else { return nil }
        var place = Int.random(in: 0..<candidates.reduce(0) { $0 + $1.bytes }, using: &random)
        for candidate in candidates {
            place -= candidate.bytes
            if place < 0 { return candidate }
        }
        return candidates.last
    }

    /// Merges the tables of the next part of a store's keys if removed entries take up at least an eighth of the
    /// store's bytes.
    /// - Returns: nil, without merging, if they take up less.
    private mutating func giveBack(_ candidate: Candidate) throws(LarderError) -> Progress? {
        let dead = candidate.store.deadBytes
        var round = rounds[ObjectIdentifier(candidate.store)] ?? Round()
        guard round.part > 0 || dead >= max(Self.deadBytesMin, candidate.bytes / 8) else { return nil }
        if try candidate.store.compact(part: round.part) {
            round.part += 1
        } else {
            round.part = 0
        }
        rounds[ObjectIdentifier(candidate.store)] = round
        return .some
    }

    private mutating func evict(
        _ chosen: Candidate, _ stores: [Candidate], _ rangeBytes: Int, wanted: Int
    ) throws(LarderError) -> Progress {
        let now = context.time.unnoticed()
        if sampledSteps >= Self.sampleSteps || sample.map({ now - $0.estimate.now > Self.sampleMilliseconds }) ?? true {
            sample = try EvictionSampler.sample(stores, share: Self.share, now: now, &random)
            sampledSteps = 0
        }
        guard let sample else { return .none }
        sampledSteps += 1
        var round = rounds[ObjectIdentifier(chosen.store)] ?? Round()
        let pass = EvictionPass(
            database: chosen.database, store: chosen.store, estimate: sample.estimate, threshold: sample.threshold,
            rangeBytes: rangeBytes, wantedBytes: wanted)
        let outcome = try pass.run(from: round.hand, leastShare: round.skipsPoorRanges ? Self.share / 4 : 0)
        if outcome.hasRemoved { round.hasRemoved = true }
        if let next = outcome.next {
            round.hand = next
        } else {
            round = Round(
                skipsPoorRanges: round.hasRemoved, isExhausted: !round.hasRemoved && !round.skipsPoorRanges,
                part: round.part)
        }
        rounds[ObjectIdentifier(chosen.store)] = round
        guard outcome.hasRemoved else { return .none }
        context.report(
            .debug,
            "evicted \(outcome.evicted) entries of database '\(chosen.database.name)', \(outcome.evictedBytes) bytes, "
                + "and removed \(outcome.gone) expired ones", database: chosen.database.name)
        return .some
    }
}
