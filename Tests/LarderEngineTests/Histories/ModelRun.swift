import LarderTestSupport

@testable import LarderEngine

/// A random history of operations that are applied to both the engine and the model.
final class ModelRun {
    /// A difference between the model and the engine.
    struct Mismatch: Error, CustomStringConvertible {
        let description: String
    }

    private struct View {
        let name: String
        let snapshot: Snapshot
        var model: Model
        /// The errors that reads of the view may throw after another operation has invalidated it.
        var endings: Set<LarderError.Code> = []
    }

    private static let names = ["a", "b"]
    static let tags = ["red", "blue"]
    var random: SeededGenerator
    private(set) var larder: TestLarder
    /// The larders that were killed. They are kept, because the directory of each contains that of the next.
    private var previous: [TestLarder] = []
    private let isFailing = Guarded(false)
    /// Whether the databases have an index of the lengths of their values.
    let isIndexed: Bool
    var models: [String: Model] = [:]
    private var views: [View] = []
    private var counter = 0
    /// The commits for which the run has not waited yet.
    private var unsettled: [CommitTicket] = []
    /// The operations so far, for the report of a mismatch.
    private(set) var trail: [String] = []

    init(seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        let isFailing = isFailing
        isIndexed = random.oneIn(2)
        let isIndexed = isIndexed
        larder = try TestLarder { options in
            if isIndexed { options.indexMaker = WordIndexMaker() }
            options.writeBufferBytes = random.oneIn(2) ? 64 << 10 : 4 << 20
            options.bloomBitsPerKey = random.oneIn(2) ? 0 : 10
            options.compression = random.oneIn(2)
            // One of three memory budgets: zero; small, so that entries are constantly evicted from memory; large.
            options.memoryBytes = [0, 20_000, 16 << 20].randomElement(using: &random) ?? 0
            options.durability = Durability.allCases.randomElement(using: &random) ?? .os
            // Small limits make checkpoints and new journal segments frequent; large limits make them rare.
            options.checkpointBytes = [3000, 64 << 20].randomElement(using: &random) ?? 3000
            options.journalSegmentBytes = [1000, 16 << 20].randomElement(using: &random) ?? 1000
            options.pinnedBytesMin = [1, 100, 1 << 20].randomElement(using: &random) ?? 1
            options.beforeCommit = { () throws(LarderError) in
                if isFailing.value { throw LarderError(.io, "told to fail", operation: "test") }
            }
        }
        self.random = random
    }

    // MARK: The run

    func run(steps: Int) throws {
        for _ in 0..<steps {
            let name = Self.names.randomElement(using: &random) ?? "a"
            try step(name)
        }
        try waitForPendingCommits()
        try checkAll()
        try checkIndex()
        try checkThatNothingIsLeft()
    }

    private func step(_ name: String) throws {
        switch Int.random(in: 0..<100, using: &random) {
        case 0..<16: try put(name)
        case 16..<18: try copy(name)
        case 18..<20: try purgeTags(name)
        case 20..<30: try putWithoutWaiting(name)
        case 30..<38: try remove(name)
        case 38..<46: try batch(name)
        case 46..<58: try passTime()
        case 58..<66: try read(name)
        case 66..<70: try compare(name)
        case 70..<74: try changePolicy(name)
        case 74..<77: try takeView(name)
        case 77..<81: try checkViews()
        case 81..<86: try sweep()
        case 86..<88: try purge(name)
        case 88..<90: try purgePrefix(name)
        case 90..<91: try purgeExpired(name)
        case 91..<94: try failedCommit(name)
        case 94..<96: try suspendAndRecover(name)
        case 96..<97: try delete(name)
        case 97..<99: try reopen()
        default: try checkIndex()
        }
    }

    func note(_ text: String) { trail.append(text) }

    func fail(_ text: String) -> Mismatch { Mismatch(description: text) }

    // MARK: Random choices

    func key() -> String {
        let group = ["", "p:", "q:", "p"].randomElement(using: &random) ?? ""
        return group + "\(Int.random(in: 0..<8, using: &random))"
    }

    private func value() -> String {
        counter += 1
        var length = random.oneIn(20) ? 5000 : Int.random(in: 0..<200, using: &random)
        // Values of 4 MiB or more are written to a separate file before they are committed.
        if random.oneIn(1500) { length = 4 << 20 }
        return "\(counter)" + String(repeating: "x", count: length)
    }

    private func policy() -> UpdatePolicy {
        let odd = UpdatePolicy.every(milliseconds: Int64.random(in: 1...5000, using: &random)) ?? .highest
        return [.highest, .high, .middle, .low, .lowest, .never, odd].randomElement(using: &random) ?? .low
    }

    private func span() -> Int64 {
        let most: Int64 =
            [1, 50, 10_000, 60_000, 3_600_000, 86_400_000, 700_000_000].randomElement(using: &random) ?? 1
        return random.oneIn(3) ? most : Int64.random(in: 0...most, using: &random)
    }

    private func rule(_ now: Int64) -> DeadlineRule {
        switch Int.random(in: 0..<8, using: &random) {
        case 0: .ownNever
        case 1, 2: .own(now + span())
        case 3: .own(max(0, now - span()))
        case 4 where random.oneIn(4): .own(.max)
        default: .governed
        }
    }

    // MARK: Databases

    func now() throws -> Int64 { try larder.engine().now() }

    /// Returns the database. Creates it if it is missing.
    func database(_ name: String) throws -> Database {
        let database = try larder.engine().openDatabase(name)
        if models[name] == nil {
            models[name] = Model(policy: .lowest)
            if isIndexed { try database.createIndex("length", "length") }
        }
        return database
    }

    // MARK: Writing

    private func put(_ name: String) throws {
        let database = try database(name)
        let now = try now()
        let (key, value, rule) = (key(), value(), rule(now))
        let isLoading = random.oneIn(2)
        var tags = random.oneIn(2) ? [] : Self.tags.filter { _ in random.oneIn(2) }
        note("put \(name) \(key) \(value.prefix(12)) \(rule) \(tags) at \(now)")
        let expected = models[name]?.expectation(key, now) ?? .absent
        let seen: String?
        if random.oneIn(3) {
            tags = []
            seen = try database.putAhead(key, value, rule: rule, loading: isLoading)
        } else {
            let encoded = try Tags(checking: tags.map { Array($0.utf8) })
            seen = try database.commit([Key(key)], loading: isLoading ? .records : .none) { update -> String? in
                defer { Array(value.utf8).withUnsafeBytes { update.put(0, payload: $0, rule: rule, tags: encoded) } }
                return isLoading ? update.current(0)?.text : nil
            }
        }
        if isLoading { try check(seen, expected, "update of \(key) in \(name)") }
        models[name]?.entries[key] = Model.Entry(value: value, storedAt: now, rule: rule, tags: tags)
    }

    /// Copies an entry to the other database, with its tags and the time at which it was stored.
    private func copy(_ name: String) throws {
        let (source, target) = (try database(name), try database(name == "a" ? "b" : "a"))
        let (key, now) = (key(), try now())
        guard let entry = models[name]?.entries[key], let rules = models[target.name] else { return }
        // Skips entries that may or may not be visible, because the result of the copy would be unknown.
        if entry.mayBeSwept || rules.isFromTheFuture(entry, now) { return }
        note("copy \(name) \(key) at \(now)")
        // Do not wait if nothing was copied: the returned ticket may then be that of an earlier commit unit, which may
        // fail.
        var isCopied = false
        let ticket = try larder.engine().change(key, in: source, and: target) { update, other in
            guard let record = update.current(0) else { return }
            other.place(0, record)
            isCopied = true
        }
        if isCopied, let ticket { try larder.engine().pipeline.wait(for: ticket) }
        guard models[name]?.isFresh(entry, now) ?? false else { return }
        var copied = entry
        if entry.rule == .governed, entry.storedAt <= rules.deadBefore {
            if let interval = rules.policy.intervalMilliseconds {
                copied.rule = .own(entry.storedAt + interval)
            } else {
                copied.storedAt = rules.deadBefore + 1
            }
        }
        models[target.name]?.entries[key] = copied
    }

    /// Purges some tags. A soft purge keeps entries for their grace time. Entries of this test have no grace, so both
    /// kinds of purges remove them.
    private func purgeTags(_ name: String) throws {
        let database = try database(name)
        let tags = Self.tags.filter { _ in random.oneIn(2) }
        guard !tags.isEmpty else { return }
        note("purge \(name) tags \(tags)")
        noteSweep()
        try database.purge(.tags(tags.map { Array($0.utf8) }, soft: random.oneIn(2)))
        models[name]?.purge(tags: Set(tags))
        for index in views.indices where views[index].name == name { views[index].model.purge(tags: Set(tags)) }
    }

    /// Makes several writes without waiting for their commits, and reads between the writes.
    private func putWithoutWaiting(_ name: String) throws {
        let database = try database(name)
        let now = try now()
        for _ in 0..<Int.random(in: 1...4, using: &random) {
            let (key, value) = (key(), value())
            note("put \(name) \(key) \(value.prefix(12)), not waited for")
            let ticket = try database.putLater(key, value)
            models[name]?.entries[key] = Model.Entry(value: value, storedAt: now, rule: .governed)
            let read = try database.read(Key(key), now: now)
            guard read.record?.text == value else { throw fail("what was just applied to \(key) is not read") }
            guard try read.ticket >= ticket || larder.engine().pipeline.isDecided(ticket) else {
                throw fail("a read of \(key) does not wait for the applied write")
            }
            unsettled.append(ticket)
        }
    }

    private func waitForPendingCommits() throws {
        for ticket in unsettled { try larder.engine().pipeline.wait(for: ticket) }
        unsettled = []
    }

    private func remove(_ name: String) throws {
        let database = try database(name)
        let key = key()
        note("remove \(name) \(key)")
        let expected = models[name]?.expectation(key, try now()) ?? .absent
        if random.oneIn(2) {
            let found = try database.remove(key)
            if case .present = expected, !found { throw fail("remove of \(key) found nothing") }
            if expected == .absent, found { throw fail("remove of \(key) found something") }
        } else {
            try database.commit([Key(key)], loading: .none) { $0.remove(0) }
        }
        models[name]?.entries[key] = nil
    }

    /// Writes several entries in one commit. Sometimes changes only their deadline rules, which keeps the time at which
    /// they were stored.
    private func batch(_ name: String) throws {
        let database = try database(name)
        let now = try now()
        let keys = (0..<Int.random(in: 1...6, using: &random)).map { _ in key() }
        let values = keys.map { _ in random.oneIn(4) ? nil : value() }
        let rules = keys.map { _ in rule(now) }
        let keepsTime = random.oneIn(3)
        note("batch \(name) \(keys) keepsTime \(keepsTime) at \(now)")
        guard var model = models[name] else { return }
        let expected = keys.map { model.expectation($0, now) }
        let first = try database.commit(keys.map(Key.init), loading: .records) { update -> [String?] in
            let seen = keys.indices.map { update.current($0)?.text }
            for index in keys.indices {
                if keepsTime, let record = update.current(index) {
                    update.put(index, record.with(rule: rules[index]))
                } else if let value = values[index] {
                    Array(value.utf8).withUnsafeBytes { update.put(index, payload: $0, rule: rules[index]) }
                } else {
                    update.remove(index)
                }
            }
            return seen
        }
        for (index, key) in keys.enumerated() {
            try check(first[index], expected[index], "batch on \(key) in \(name)")
            // It is uncertain whether the entry exists: the batch's first read of it decides.
            if case .unsure = expected[index], !keys[..<index].contains(key) {
                if first[index] == nil { model.entries[key] = nil } else { model.entries[key]?.mayBeSwept = false }
            }
            if keepsTime, case .present = model.expectation(key, now) {
                model.entries[key]?.rule = rules[index]
            } else if let value = values[index] {
                model.entries[key] = Model.Entry(value: value, storedAt: now, rule: rules[index])
            } else {
                model.entries[key] = nil
            }
        }
        models[name] = model
    }

    func failedCommit(_ name: String) throws {
        let database = try database(name)
        note("failing commits on \(name)")
        try waitForPendingCommits()
        isFailing.value = true
        defer { isFailing.value = false }
        let tickets = try (0..<3).map { _ in try database.putLater(key(), value()) }
        let other = policy()
        for ticket in tickets {
            let code = errorCode { try larder.engine().pipeline.wait(for: ticket) }
            guard code == .commitFailed else { throw fail("a commit that fails answered \(String(describing: code))") }
        }
        if other != database.policy, errorCode({ try database.setPolicy(other) }) != .commitFailed {
            throw fail("a failing change of policy did not fail")
        }
        // Purging a database that is already purged writes nothing, so it cannot fail.
        let expected: LarderError.Code? = database.ticketIfEmpty() == nil ? .commitFailed : nil
        guard errorCode({ _ = try database.purge(.all(counting: false)) }) == expected else {
            throw fail("a failing purge did not fail")
        }
        if database.policy != models[name]?.policy { throw fail("a failed change of policy stayed") }
    }

    /// Suspends the store (the database's LevelDB), as the engine does after a failed LevelDB write, and recovers it.
    private func suspendAndRecover(_ name: String) throws {
        let database = try database(name)
        // If the store has no files yet, no write to them can have failed.
        if let store = database.durableState.store, !store.isMade { return }
        note("suspend \(name)")
        try waitForPendingCommits()
        database.durableState.store?.suspend(LarderError(.io, "pulled out", operation: "test"))
        guard errorCode({ _ = try database.putLater(key(), value()) }) == .writesSuspended else {
            throw fail("a suspended database took a write")
        }
        try compare(name)
        if random.oneIn(2) { try larder.maintain() } else { try database.prepare(forWriting: true) }
        noteSweep()
        end(name, [.invalidated])
    }

    // MARK: Whole databases

    private func changePolicy(_ name: String) throws {
        let database = try database(name)
        let policy = policy()
        note("policy \(name) \(policy) at \(try now())")
        try database.setPolicy(policy)
        models[name]?.change(policy, try now())
    }

    private func purge(_ name: String) throws {
        let database = try database(name)
        note("purge \(name)")
        let isPurged = database.ticketIfEmpty() != nil
        _ = try database.purge(.all(counting: random.oneIn(2)))
        if isPurged { return }
        models[name]?.entries = [:]
        models[name]?.purged = []
        models[name]?.deadBefore = 0
        end(name, [.purged])
    }

    private func purgePrefix(_ name: String) throws {
        let database = try database(name)
        let prefix = ["p:", "q:", "p", "1", "z"].randomElement(using: &random) ?? ""
        note("purge \(name) prefix \(prefix)")
        noteSweep()
        let report = try database.purge(.prefix(Array(prefix.utf8)))
        guard let model = models[name] else { return }
        let matching = model.entries.filter { $0.key.hasPrefix(prefix) }
        let sure = matching.count { !$0.value.mayBeSwept }
        let removed = report.entries ?? 0
        let unseen = model.purged.count { $0.hasPrefix(prefix) && model.entries[$0] == nil }
        guard (sure...matching.count + unseen).contains(removed) else {
            throw fail("purge of prefix \(prefix) removed \(removed) of \(matching.count)")
        }
        // An expired entry that a sweep may have removed stays in the model: after a restart it may come back from the
        // journal, still expired.
        for (key, entry) in matching where !entry.mayBeSwept { models[name]?.entries[key] = nil }
    }

    private func purgeExpired(_ name: String) throws {
        let database = try database(name)
        note("purge \(name) expired")
        noteSweep()
        _ = try database.purge(.expired(merges: true))
        // Expired entries stay in the model: an entry that expired before it was written to LevelDB may come back from
        // the journal, still expired. It then counts as a stored entry, but is not visible.
    }

    private func delete(_ name: String) throws {
        note("delete \(name)")
        guard models[name] != nil else { return }
        _ = try larder.engine().deleteDatabase(name)
        models[name] = nil
        end(name, [.deleted])
    }

    private func sweep() throws {
        if random.oneIn(3) { return try rewrite() }
        note("sweep")
        if random.oneIn(2) { try larder.maintain() } else { try larder.engine().maintain() }
        noteSweep()
    }

    private func rewrite() throws {
        note("rewrite")
        for database in try larder.engine().databases.prefix(1) { try database.checkpointer.rewrite() }
    }

    func noteSweep() {
        guard let now = try? now() else { return }
        for name in models.keys { models[name]?.noteSweep(now) }
    }

    private func reopen() throws {
        note("reopen")
        noteSweep()
        let (killed, hook) = (random.oneIn(2), larder.options.beforeCommit)
        if killed { try waitForPendingCommits() }
        let crashCopy = try larder.crashCopy { $0.beforeCommit = hook }
        try checkFiles(crashCopy, "after a kill")
        larder.close()
        try checkFiles(larder, "after the end")
        if killed {
            note("what is left is as after a kill")
            previous.append(larder)
            larder = crashCopy
        }
        unsettled = []
        if random.oneIn(2) {
            let step = random.oneIn(2) ? span() : -span()
            note("wall clock \(step) while closed")
            larder.time.stepWall(milliseconds: step)
        }
        let now = try now()
        for name in models.keys {
            _ = try larder.database(name)
            models[name]?.noteOpening(now)
            end(name, [.closed])
        }
        try checkAll()
    }

    private func passTime() throws {
        if random.oneIn(5) {
            let step = random.oneIn(2) ? span() : -span()
            // Let the engine read the clock before the step. Otherwise a step back by exactly the time since its last
            // reading would go unnoticed.
            _ = try now()
            note("wall clock \(step)")
            larder.time.stepWall(milliseconds: step)
        } else {
            var passed = span()
            // In half of the cases, moves the time to a deadline of an entry.
            let now = try now()
            if random.oneIn(2), let edge = edges(now).randomElement(using: &random) { passed = max(0, edge - now) }
            note("time \(passed)")
            larder.time.advance(milliseconds: passed)
        }
    }

    /// Returns the deadlines of entries, and the milliseconds before them.
    private func edges(_ now: Int64) -> [Int64] {
        models.values.flatMap { model in
            model.entries.values.compactMap { entry -> Int64? in
                switch entry.rule {
                case .own(let deadline): deadline < now + 1_000_000_000 ? deadline : nil
                case .governed: model.policy.intervalMilliseconds.map { entry.storedAt + $0 }
                case .ownNever: nil
                }
            }
        }.sorted().flatMap { [$0 - 1, $0] }
    }

    // MARK: Views

    private func takeView(_ name: String) throws {
        let database = try database(name)
        guard views.count < 4, let model = models[name] else { return }
        note("snapshot \(name)")
        noteSweep()
        views.append(View(name: name, snapshot: try database.snapshot(), model: model))
    }

    private func end(_ name: String, _ codes: Set<LarderError.Code>) {
        for index in views.indices where views[index].name == name { views[index].endings.formUnion(codes) }
    }

    private func checkViews() throws {
        note("check snapshots")
        for view in views {
            let now = try now()
            guard view.endings.isEmpty else {
                let code = errorCode { _ = try view.snapshot.contents() }
                guard let code, view.endings.contains(code) else {
                    throw fail("a snapshot of \(view.name) answered \(String(describing: code)) after \(view.endings)")
                }
                continue
            }
            // A view has the entries that existed when it was created, but uses the current time and policy.
            var model = view.model
            model.policy = models[view.name]?.policy ?? .low
            model.deadBefore = models[view.name]?.deadBefore ?? 0
            try check(try view.snapshot.contents(), model, now, "snapshot of \(view.name)")
            let key = key()
            try check(try view.snapshot.value(key), model.expectation(key, now), "snapshot's \(key)")
        }
        views.removeAll { view in !view.endings.isEmpty || random.oneIn(4) }
    }
}
