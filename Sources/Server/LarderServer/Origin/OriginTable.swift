import LarderEngine
import LarderOriginClients
import LarderOutboxes
import LarderPlatform
import Synchronization

/// Creates the connections to an origin. Throws if the settings do not allow it. May block.
package typealias OriginFactory =
    @Sendable (OriginSource, OriginReads, OriginLimits, any OriginListener) throws(OriginError) -> any Origin

/// The origins of all databases, by the name of the database. Stored in the ledger, the larder's internal database.
///
/// A change is durable in the ledger before it takes effect.
///
/// `@unchecked Sendable`: the variables are guarded by `lock`; the rest is constant or atomic.
package final class OriginTable: @unchecked Sendable {
    /// The number of changes so far. When the number has increased, each session looks up its origin again.
    let generation = Atomic<Int>(0)
    private let lock = Lock()
    /// Locked during a whole change, including its write to the ledger, so that changes happen one at a time.
    private let changing = Lock()
    private var tiers: [String: OriginTier] = [:]
    /// The deliveries of outboxes, by the name of the database. An outbox contains writes queued for an origin.
    private var deliveries: [String: OutboxDelivery] = [:]
    /// Origins that are not set up yet, or could not be when the daemon started. They stay in the ledger.
    private var failed: [String: (OriginSettings, CommandError)] = [:]
    /// The thread that polls for cycles of larders.
    private var watch: WorkThread?
    private var isClosed = false
    private let closing = Condition()
    /// The thread on which changes run one at a time. Each change may wait for an origin's reply.
    private var turns: WorkerPool?
    /// The new origin that a running change is checking.
    private var candidate: OriginTier?
    /// The name of this larder in upstream chains (lists of larders, each with the next one as its origin).
    private let larder: String
    private let surroundings: OriginTier.Surroundings
    private let limits: OriginLimits
    private let keysMax: Int
    private let make: OriginFactory
    /// Why the stored origins could not be read; nil if they were read. With a defect, it is unknown which databases
    /// have an origin, so no database is served. Guarded by `lock`.
    ///
    /// If the damaged ledger has lost facts, possibly also the origins, setting an origin clears the defect. Otherwise
    /// the administrator must repair the stored list of origins, so it is left unchanged.
    private var defect: (error: CommandError, isLoss: Bool)?

    /// Whether the stored origins still have to be set up: ``begin()``.
    let isLoading = Atomic<Bool>(true)

    /// Reads the stored origins of a larder, and connects to them if the journal is replayed. Logs problems instead of
    /// throwing them.
    init(
        larder: String, limits: OriginLimits, keysMax: Int, _ surroundings: OriginTier.Surroundings,
        make: @escaping OriginFactory
    ) {
        self.larder = larder
        self.limits = limits
        self.keysMax = keysMax
        self.surroundings = surroundings
        self.make = make
        let file = readStored()
        if let defect { surroundings.log.error(defect.error.text) }
        failed = file.settings.mapValues { ($0, .loading) }
        noteUse()
        if surroundings.engine.isReplayed { begin() }
    }

    /// Sets up the stored origins. Called when the journal has been replayed, because outboxes are read. Idempotent.
    func begin() {
        changing.lock()
        defer { changing.unlock() }
        guard isLoading.load(ordering: .relaxed) else { return }
        let waiting: [String: OriginSettings] = lock.withLock { isClosed ? [:] : failed.mapValues { $0.0 } }
        for (name, settings) in waiting {
            do throws(CommandError) {
                let tier = try tier(settings, name)
                lock.withLock { (tiers[name], failed[name]) = (tier, nil) }
                beginDelivery(tier)
            } catch {
                lock.withLock { failed[name] = (settings, error) }
                surroundings.log.error("the origin of database '\(name)' cannot be used: \(error.text)")
            }
        }
        noteUse()
        generation.wrappingAdd(1, ordering: .acquiringAndReleasing)
        isLoading.store(false, ordering: .releasing)
        watchCycles()
    }

    /// Moves the file of an earlier version to the ledger if there is one, and reads the origins from the ledger. On
    /// failure, sets ``defect``.
    private func readStored() -> OriginFile {
        let ledger = surroundings.engine.ledger
        let path = surroundings.engine.directory + "/" + OriginFile.fileName
        do {
            if let bytes = try FileSystem.read(path, bytesMax: OriginFile.fileBytesMax) {
                let file = try OriginFile(parsing: bytes)
                try ledger.adopt(OriginFile.factName, bytes, from: path)
                return file
            }
        } catch {
            let error = CommandError(
                "ERR origins are disabled: cannot read \(path) "
                    + "(\(error)); restore it, or remove it and set the origins again")
            defect = (error: error, isLoss: false)
            return OriginFile()
        }
        do {
            if let bytes = try ledger.value(OriginFile.factName) { return try OriginFile(parsing: bytes) }
            if ledger.lossMilliseconds > 0 {
                let error = CommandError(
                    "ERR origins are disabled: they may have been lost because the larder's ledger was damaged; set "
                        + "them again with ORIGIN, or confirm with ORIGIN NONE that there were none")
                defect = (error: error, isLoss: true)
            }
        } catch {
            defect = (error: CommandError("ERR origins are disabled: they cannot be read: \(error)"), isLoss: false)
        }
        return OriginFile()
    }

    /// Whether any database has an origin, or may have one. Also true while origins are unusable or unknown.
    var isUsed: Bool { isAnyUsed.load(ordering: .relaxed) }
    private let isAnyUsed = Atomic<Bool>(true)

    /// The number of file descriptors that the connections to all origins may use.
    let descriptorCount = Atomic<Int>(0)
    /// The descriptors of an origin: the pipe of its thread, and three connections to each server.
    private static func descriptors(_ origin: any Origin) -> Int { 2 + 3 * max(1, origin.status().servers.count) }

    /// Returns the origin of a database; nil if it has none.
    /// - Throws: an error if its origin cannot be used, or is unknown. In this case the database must not be served.
    func tier(of name: String) throws(CommandError) -> OriginTier? {
        guard isUsed else { return nil }
        let (tier, error) = lock.withLock { (tiers[name], defect?.error ?? failed[name]?.1) }
        if let error { throw error }
        return tier
    }

    /// The number of databases whose origin cannot be used. While the origins are unknown, the number of all databases.
    var unusableCount: Int {
        lock.withLock { defect == nil ? failed.count : nil } ?? surroundings.engine.databases.count
    }

    /// The usable origins, sorted by the names of their databases.
    var all: [OriginTier] { lock.withLock { Array(tiers.values) }.sorted { $0.database.name < $1.database.name } }

    /// Creates a database's tier (the database in front of its origin), and connects to the origin.
    /// - Parameter outbox: an outbox that is loaded already; nil to load it if the settings need one.
    private func tier(
        _ settings: OriginSettings, _ name: String, outbox: Outbox? = nil
    ) throws(CommandError) -> OriginTier {
        let database = try CommandError.wrap(surroundings.engine.database(name))
        if let path = settings.source.passwordPath {
            for warning in PasswordFile.warnings(path, program: "larderd") { surroundings.log.warning(warning) }
        }
        // Open the database's files now, because caching needs them. If this fails, the daemon tries again when it
        // caches the first value.
        try? database.prepare(forWriting: true)
        var used: Outbox?
        if settings.writing == .behind {
            used = outbox
            if used == nil { used = try self.outbox(of: name) }
        }
        let tier = OriginTier(settings, database, limits: limits, keysMax: keysMax, outbox: used, surroundings)
        do throws(OriginError) {
            tier.begin(try make(settings.source, settings.reads, limits, tier))
        } catch {
            throw CommandError(error)
        }
        return tier
    }

    /// Runs a change on the table's own thread, after all earlier changes. If background threads are disabled, runs the
    /// change on the caller's thread.
    /// - Parameter then: called once with the result, on any thread.
    func inTurn(
        _ change: @escaping @Sendable (OriginTable) throws(CommandError) -> Void,
        then: @escaping @Sendable (Result<Void, CommandError>) -> Void
    ) {
        let work = { @Sendable [self] in then(Result { () throws(CommandError) in try change(self) }) }
        guard surroundings.engine.options.backgroundMaintenance else { return work() }
        let pool = lock.withLock { () -> WorkerPool? in
            guard !isClosed else { return nil }
            if turns == nil { turns = WorkerPool(name: "larder-origins", threads: 1) }
            return turns
        }
        if let pool { pool.submit(work) } else { then(.failure(.originsClosed)) }
    }

    /// Sets, replaces or removes the origin of a database. May block.
    /// - Parameter discards: whether writes that are still queued for the previous origin may be lost.
    func set(_ settings: OriginSettings?, for name: String, discards: Bool = false) throws(CommandError) {
        if let defect = lock.withLock({ defect }), !defect.isLoss { throw defect.error }
        if settings != nil, DatabaseName.isKept(name) {
            throw CommandError("ERR '\(name)' is an outbox and cannot have an origin")
        }
        try changing.withLock { () throws(CommandError) in
            if lock.withLock({ isClosed }) { throw .originsClosed }
            let (previous, before) = lock.withLock { (tiers[name], tiers[name]?.settings ?? failed[name]?.0) }
            var settings = settings
            let url = settings?.source.url
            let isSame = before?.source.url == url
            if isSame { settings?.since = previous?.since ?? before?.since ?? 0 }
            // If the previous origin could not be set up, its outbox was not loaded: load it here.
            var found = previous?.outbox
            if previous == nil, before?.writing == .behind { found = try self.outbox(of: name) }
            if found == nil, settings?.writing == .behind { found = try companionToDiscard(name, discards) }
            let outbox = found
            let continues =
                outbox != nil && !discards && settings?.writing == .behind && settings?.source == before?.source
            if !continues { try checkNothingWaits(name, outbox, discards) }
            let tier = try settings.map { (settings) throws(CommandError) in
                try self.tier(settings, name, outbox: continues ? outbox : nil)
            }
            do throws(CommandError) {
                // This waits for the new origin's reply. The previous origin stays in use meanwhile.
                if let tier { try checkIsNoCycle(tier) }
                if !continues {
                    outbox?.index.seal(true)
                    try checkNothingWaits(name, outbox, discards)
                }
                // From here on, cache no values of the previous origin, unless the new settings have the same URL.
                previous?.keep(isSame)
                if let tier, !isSame, try hasEntries(tier.database) {
                    tier.begin(since: surroundings.engine.now() + 1)
                    settings?.since = tier.since
                }
                try change(name, to: tier, settings, continues ? nil : outbox)
            } catch {
                tier?.close()
                previous?.keep(true)
                outbox?.index.seal(false)
                if let previous { beginDelivery(previous) }
                throw error
            }
            // Sessions that have not noticed the change still use the previous tier. Close the tier, because its outbox
            // is no longer delivered.
            previous?.close()
        }
    }

    private func hasEntries(_ database: Database) throws(CommandError) -> Bool {
        do throws(LarderError) {
            guard let cursor = try database.cursor() else { return false }
            defer { cursor.close() }
            return try cursor.next()
        } catch {
            // If the database was purged or reopened during the check, assume that the database has entries.
            guard error.code == .purged || error.code == .invalidated else { throw CommandError(error) }
            return true
        }
    }

    private func change(
        _ name: String, to tier: OriginTier?, _ settings: OriginSettings?, _ discarded: Outbox?
    ) throws(CommandError) {
        // Stop the delivery, and wait until it has stopped: below, its outbox is discarded, or gets a new delivery.
        lock.withLock { deliveries.removeValue(forKey: name) }?.stop()
        do throws(LarderError) {
            try discarded?.discard()
            if discarded != nil { try tier?.outbox?.load() }
        } catch {
            throw CommandError(error)
        }
        try write(settings, name)
        lock.withLock {
            tiers[name] = tier
            failed[name] = nil
            defect = nil
        }
        noteUse()
        generation.wrappingAdd(1, ordering: .acquiringAndReleasing)
        if let tier {
            beginDelivery(tier)
            // Check for a cycle again: the larder at the origin may have set its own origin at the same time.
            checkCycle(tier, isUrgent: true)
            watchCycles()
        }
        let now = tier.map { "its origin is now \($0.origin.name), \($0.settings.writing.rawValue)" }
        surroundings.log.info("database '\(name)': \(now ?? "its origin was removed")")
        guard let database = try? surroundings.engine.database(name) else { return }
        // Notify tracking clients, which may have cached entries from before the change.
        surroundings.notify(database, nil)
    }

    // MARK: The outbox

    private func outbox(of name: String) throws(CommandError) -> Outbox {
        guard let companion = Outbox.name(for: name) else {
            throw CommandError(
                "ERR BEHIND needs a database '\(name + DatabaseName.outboxEnding)' as its outbox, and that name is "
                    + "too long: use a shorter database name")
        }
        return try CommandError.wrap(
            Outbox(surroundings.engine.database(companion), most: keysMax, held: surroundings.engine.held))
    }

    private func checkNothingWaits(_ name: String, _ outbox: Outbox?, _ discards: Bool) throws(CommandError) {
        guard let waiting = outbox?.index.waiting, waiting > 0, !discards else { return }
        throw CommandError(
            "ERR \(counted(waiting, "write is", "writes are")) queued for the origin of database '\(name)', and would "
                + "be lost: wait until ORIGIN reports outbox 0, or add DISCARD. Nothing was changed")
    }

    /// Checks the outbox of a database that did not use write-behind. Entries in the outbox were queued for another
    /// origin, or written by users.
    /// - Returns: the outbox; nil if it is empty.
    /// - Throws: an error if the outbox contains entries and `discards` is false.
    private func companionToDiscard(_ name: String, _ discards: Bool) throws(CommandError) -> Outbox? {
        let companion = try outbox(of: name)
        guard companion.index.waiting > 0 else { return nil }
        guard discards else {
            throw CommandError(
                "ERR database '\(companion.database.name)' has entries that were not queued for this origin "
                    + "(\(companion.index.waiting)): writes for a previous origin (restore that origin from a backup), "
                    + "or your own entries (move them elsewhere). To remove them, PURGE in "
                    + "'\(companion.database.name)', or add DISCARD. Nothing was changed")
        }
        return companion
    }

    /// Starts to deliver the writes in the tier's outbox, unless a delivery exists. Without background threads, nothing
    /// is delivered until ``deliver(_:)`` is called.
    private func beginDelivery(_ tier: OriginTier) {
        guard let outbox = tier.outbox else { return }
        let delivery = lock.withLock { () -> OutboxDelivery? in
            guard deliveries[tier.database.name] == nil else { return nil }
            let delivery = OutboxDelivery(tier, outbox, surroundings.engine, surroundings.log)
            deliveries[tier.database.name] = delivery
            return delivery
        }
        if surroundings.engine.options.backgroundMaintenance { delivery?.start() }
    }

    /// Reloads an outbox that was purged, fully or partly. Ignores databases that are not outboxes. May block.
    func outboxPurged(_ companion: String) throws(LarderError) {
        guard DatabaseName.isKept(companion) else { return }
        let name = String(companion.dropLast(DatabaseName.outboxEnding.count))
        try lock.withLock { tiers[name]?.outbox }?.load()
    }

    /// Delivers some of the queued writes of a database, and waits for the results. Used if the larder has no
    /// background threads.
    /// - Returns: the time until the next call is useful, in milliseconds; nil if the database has no outbox.
    @discardableResult
    func deliver(_ name: String) -> Int64? { lock.withLock { deliveries[name] }?.round() }

    // MARK: Cycles

    /// Finds the upstream chain of a database, from this larder to the last larder that can be reached. Sends a request
    /// to the origin, and does not block.
    /// - Parameters:
    ///   - nodes: the larders that have forwarded this request so far. If this larder is one of them, the chain ends
    ///     here.
    ///   - then: called once with the chain, on any thread.
    func path(
        from name: String, behind nodes: [String], then: @escaping @Sendable ([String]) -> Void
    ) throws(CommandError) {
        let node = node(name)
        guard !nodes.contains(node), nodes.count < Self.lardersMax, let tier = try tier(of: name) else {
            return then([node])
        }
        tier.hopQueries.ask(tier.origin, nodes + [node]) { then([node] + $0) }
    }

    /// The maximum number of larders that a request for the chain passes through.
    private static let lardersMax = 64

    private func node(_ name: String) -> String { "\(larder)/\(name)" }

    /// Requests the origin's upstream chain, and throws if the chain contains this database. Blocks until the origin
    /// has replied.
    private func checkIsNoCycle(_ tier: OriginTier) throws(CommandError) {
        let node = node(tier.database.name)
        let mayAsk = lock.withLock {
            candidate = tier
            return !isClosed
        }
        defer { lock.withLock { candidate = nil } }
        let path = mayAsk ? tier.hopQueries.path(tier.origin, [node]) : []
        if lock.withLock({ isClosed }) { throw .originsClosed }
        guard let reason = OriginPath.circle(of: node, tier.origin.name, path) else { return }
        throw CommandError("ERR \(reason). Nothing was changed")
    }

    /// Checks each origin for a cycle if a poll is due. Does not block.
    func checkCycles() {
        for tier in all { checkCycle(tier, isUrgent: false) }
        // A cluster may have other servers than before.
        noteUse()
    }

    private func checkCycle(_ tier: OriginTier, isUrgent: Bool) {
        let engine = surroundings.engine
        tier.cycleDetector.ask(tier, node(tier.database.name), isUrgent: isUrgent, monotonic: { engine.monotonic() })
    }

    /// Starts the thread that polls for cycles, unless it runs already or no database has an origin.
    private func watchCycles() {
        guard surroundings.engine.options.backgroundMaintenance, isUsed else { return }
        lock.withLock {
            guard watch == nil, !isClosed else { return }
            watch = WorkThread(name: "larder-circles") { [self] in
                while lock.withLock({
                    if !isClosed { _ = closing.wait(lock, milliseconds: Self.watchMilliseconds) }
                    return !isClosed
                }) {
                    checkCycles()
                }
            }
        }
    }

    private static let watchMilliseconds: Int64 = 500

    private func write(_ settings: OriginSettings?, _ name: String) throws(CommandError) {
        var file = OriginFile()
        lock.withLock {
            file.settings = tiers.mapValues(Self.settings(of:)).merging(failed.mapValues(\.0)) { first, _ in first }
        }
        file.settings[name] = settings
        do throws(LarderError) {
            try surroundings.engine.ledger.set(OriginFile.factName, to: file.bytes)
        } catch {
            throw CommandError("ERR the origin could not be saved; nothing was changed: \(error.message)")
        }
    }

    private static func settings(of tier: OriginTier) -> OriginSettings {
        var settings = tier.settings
        settings.since = tier.since
        return settings
    }

    private func noteUse() {
        isAnyUsed.store(
            lock.withLock { defect != nil || !tiers.isEmpty || !failed.isEmpty }, ordering: .releasing)
        descriptorCount.store(all.reduce(0) { $0 + Self.descriptors($1.origin) }, ordering: .relaxed)
    }

    /// Closes all connections, and stops all threads. Queued writes stay in their outboxes. Blocks until running calls
    /// of origins have ended. Idempotent.
    func close() {
        let (watch, turns, candidate) = lock.withLock {
            isClosed = true
            closing.signal()
            defer { (self.watch, self.turns) = (nil, nil) }
            return (self.watch, self.turns, self.candidate)
        }
        // Close the candidate first: the command that sets this origin waits for a reply of the origin.
        candidate?.close()
        watch?.join()
        turns?.stop()
        changing.withLock {}
        for delivery in lock.withLock({ Array(deliveries.values) }) { delivery.stop() }
        for tier in all { tier.close() }
    }
}

extension OriginTable {
    /// Creates the connections to an origin that is Redis, Valkey, a larder, or a cluster of Redis or Valkey.
    package static let redis: OriginFactory = { (source, reads, limits, listener) throws(OriginError) in
        let address: OriginAddress
        do throws(OriginAddress.Failure) {
            address = try OriginAddress(source.url, user: source.user, passwordFile: source.passwordPath)
        } catch {
            throw .unsuitable(error.description)
        }
        guard reads.secondReadAfter == nil || address.isCluster else {
            throw .unsuitable("REPLICAS needs a cluster: use it with redis+cluster://")
        }
        let tracking: RedisOrigin.Tracking =
            switch reads.hearing {
            case .tracking: .read
            case .broadcast(let prefixes): .broadcast(prefixes: prefixes.map { Array($0.utf8) })
            case .lifetimes: .none
            }
        return RedisOrigin(
            address, limits: limits, tracking: tracking, secondReadAfter: reads.secondReadAfter, listener: listener)
    }
}
