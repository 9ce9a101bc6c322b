import LarderEngine
import LarderOriginClients
import LarderOutboxes
import LarderPlatform
import Synchronization

/// Makes the connections to an origin; throws if there can be none. May block.
package typealias OriginFactory =
    @Sendable (OriginSource, OriginReads, OriginLimits, any OriginListener) throws(OriginError) -> any Origin

/// The origins of all databases, in memory and in the larder's ledger. They belong to the names of their databases.
///
/// A change is in the ledger, durably, before it is seen.
///
/// Thread-safe. The proof for `@unchecked Sendable`: ``tiers`` is read and written with the lock held, everything else is
/// constant or atomic.
package final class OriginTable: @unchecked Sendable {
    /// Goes up with each change.
    let generation = Atomic<Int>(0)
    private let lock = Lock()
    /// Held while a change is made and written: one at a time.
    private let changing = Lock()
    private var tiers: [String: OriginTier] = [:]
    /// What waits for origins, and who brings it.
    private var deliveries: [String: OutboxDelivery] = [:]
    /// Origins that could not be set up at the start: they stay in the file.
    private var failed: [String: (OriginSettings, CommandError)] = [:]
    /// Looks for circles.
    private var watch: WorkThread?
    private var isClosed = false
    private let closing = Condition()
    /// Makes changes, one after the other: each may wait for an origin.
    private var turns: WorkerPool?
    /// The origin that is looked at before it is set.
    private var candidate: OriginTier?
    /// The name of this larder among others.
    private let larder: String
    private let surroundings: OriginTier.Surroundings
    private let limits: OriginLimits
    private let keysMax: Int
    private let make: OriginFactory
    /// Why the origins are unknown; then no database answers. Guarded by `lock`.
    private var defect: Defect?

    private enum Defect {
        /// The file of an earlier version cannot be read, and is left as it is.
        case unreadable(CommandError)
        /// The ledger has lost facts, and does not have the origins. The next setting of an origin confirms what is known.
        case lost(CommandError)

        var error: CommandError {
            switch self {
            case .unreadable(let error), .lost(let error): error
            }
        }
    }

    /// Reads the origins of a larder. What is wrong with them is written to the log.
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
        for (name, settings) in file.settings {
            do throws(CommandError) {
                let tier = try tier(settings, name)
                tiers[name] = tier
                beginDelivery(tier)
            } catch {
                failed[name] = (settings, error)
                surroundings.log.error("the origin of the database '\(name)' cannot be asked: \(error.text)")
            }
        }
        noteUse()
        watchCircles()
    }

    /// What the ledger has, or the file of an earlier version, which the ledger takes over. Sets ``defect``.
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
            defect = .unreadable(
                CommandError(
                    "ERR the origins of the databases are unknown, and none is asked: \(path) cannot be read "
                        + "(\(error)): restore it, or remove it and set the origins again"))
            return OriginFile()
        }
        do {
            if let bytes = try ledger.value(OriginFile.factName) { return try OriginFile(parsing: bytes) }
            if ledger.lossMilliseconds > 0 {
                defect = .lost(
                    CommandError(
                        "ERR the origins of the databases may have been lost with damage to the larder's ledger, and none "
                            + "is asked: set them again with ORIGIN, or confirm with ORIGIN NONE that there were none"))
            }
        } catch {
            defect = .unreadable(
                CommandError("ERR the origins of the databases are unknown, and none is asked: \(error)"))
        }
        return OriginFile()
    }

    /// Whether any database has an origin, or should have one.
    var isUsed: Bool { isAnyUsed.load(ordering: .relaxed) }
    private let isAnyUsed = Atomic<Bool>(true)

    /// The origin of a database; nil if it has none.
    /// - Throws: if it should have one, and that cannot be asked: then the database must not answer on its own.
    func tier(of name: String) throws(CommandError) -> OriginTier? {
        guard isUsed else { return nil }
        let (tier, error) = lock.withLock { (tiers[name], defect?.error ?? failed[name]?.1) }
        if let error { throw error }
        return tier
    }

    /// How many databases should have an origin that cannot be asked; as long as the origins are unknown, these are all.
    var unusableCount: Int {
        lock.withLock { defect == nil ? failed.count : nil } ?? surroundings.engine.databases.count
    }

    /// All that work, by the names of their databases.
    var all: [OriginTier] { lock.withLock { Array(tiers.values) }.sorted { $0.database.name < $1.database.name } }

    /// - Parameter outbox: what waits already; nil: it is read.
    private func tier(
        _ settings: OriginSettings, _ name: String, outbox: Outbox? = nil
    ) throws(CommandError) -> OriginTier {
        let database: Database
        do throws(LarderError) {
            database = try surroundings.engine.database(name)
        } catch {
            throw CommandError(error)
        }
        if let path = settings.source.passwordPath {
            for warning in PasswordFile.warnings(path, program: "larderd") { surroundings.log.warning(warning) }
        }
        // What is kept needs files; without them nothing is kept yet.
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

    /// Makes a change in its turn, on a thread of the table's own: at once where the larder has no threads of its own.
    /// - Parameter then: called once, on any thread.
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

    /// Gives a database an origin, another one, or none. May block.
    /// - Parameter discards: whether what waits for the former origin may be forgotten.
    func set(_ settings: OriginSettings?, for name: String, discards: Bool = false) throws(CommandError) {
        if case .unreadable(let error)? = lock.withLock({ defect }) { throw error }
        if settings != nil, DatabaseName.isKept(name) {
            throw CommandError("ERR '\(name)' has what waits for an origin, and cannot have one itself")
        }
        try changing.withLock { () throws(CommandError) in
            if lock.withLock({ isClosed }) { throw .originsClosed }
            let (former, before) = lock.withLock { (tiers[name], tiers[name]?.settings ?? failed[name]?.0) }
            var settings = settings
            let url = settings?.source.url
            let isSame = before?.source.url == url
            if isSame { settings?.since = former?.since ?? before?.since ?? 0 }
            // What waits for an origin that could not be set up waits for it alone.
            var found = former?.outbox
            if former == nil, before?.writing == .behind { found = try self.outbox(of: name) }
            if found == nil, settings?.writing == .behind { found = try companionToDiscard(name, discards) }
            let outbox = found
            let goesOn =
                outbox != nil && !discards && settings?.writing == .behind && settings?.source == before?.source
            if !goesOn { try checkNothingWaits(name, outbox, discards) }
            let tier = try settings.map { (settings) throws(CommandError) in
                try self.tier(settings, name, outbox: goesOn ? outbox : nil)
            }
            do throws(CommandError) {
                // Takes as long as the origin does: meanwhile all goes on as before.
                if let tier { try checkIsNoCircle(tier) }
                if !goesOn {
                    outbox?.index.seal(true)
                    try checkNothingWaits(name, outbox, discards)
                }
                // From here on no entry of the former origin comes.
                former?.keep(isSame)
                if let tier, !isSame, try hasEntries(tier.database) {
                    tier.begin(since: surroundings.engine.now() + 1)
                    settings?.since = tier.since
                }
                try change(name, to: tier, settings, goesOn ? nil : outbox)
            } catch {
                tier?.close()
                former?.keep(true)
                outbox?.index.seal(false)
                if let former { beginDelivery(former) }
                throw error
            }
            // Sessions that have not heard of it yet must write nothing that nobody would bring.
            former?.close()
        }
    }

    private func hasEntries(_ database: Database) throws(CommandError) -> Bool {
        do throws(LarderError) {
            guard let cursor = try database.cursor() else { return false }
            defer { cursor.close() }
            return try cursor.next()
        } catch {
            // Emptied or reopened meanwhile.
            guard error.code == .purged || error.code == .invalidated else { throw CommandError(error) }
            return true
        }
    }

    private func change(
        _ name: String, to tier: OriginTier?, _ settings: OriginSettings?, _ discarded: Outbox?
    ) throws(CommandError) {
        // What is under way ends before it is forgotten, or brought by another.
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
            // The other one may have been set at the same moment.
            checkCircle(tier, isUrgent: true)
            watchCircles()
        }
        let now = tier.map { "its origin is now \($0.origin.name), \($0.settings.writing.rawValue)" }
        surroundings.log.info("database '\(name)': \(now ?? "it has no origin any more")")
        guard let database = try? surroundings.engine.database(name) else { return }
        // Clients that keep copies have them from before.
        surroundings.tell(database, nil)
    }

    // MARK: What waits

    private func outbox(of name: String) throws(CommandError) -> Outbox {
        guard let companion = Outbox.name(for: name) else {
            throw CommandError(
                "ERR BEHIND needs a database '\(name + DatabaseName.outboxEnding)' for what waits, and that is no possible "
                    + "name: use a shorter one")
        }
        do throws(LarderError) {
            return try Outbox(
                try surroundings.engine.database(companion), most: keysMax, held: surroundings.engine.held)
        } catch {
            throw CommandError(error)
        }
    }

    private func checkNothingWaits(_ name: String, _ outbox: Outbox?, _ discards: Bool) throws(CommandError) {
        guard let waiting = outbox?.index.waiting, waiting > 0, !discards else { return }
        throw CommandError(
            "ERR \(waiting) writes wait for the origin of the database '\(name)', and would be lost: wait until ORIGIN says "
                + "that outbox is 0, or add DISCARD. Nothing was changed")
    }

    /// What a companion database has that nobody accepted for the origin; nil if that is nothing.
    /// - Throws: unless it is to be discarded.
    private func companionToDiscard(_ name: String, _ discards: Bool) throws(CommandError) -> Outbox? {
        let companion = try outbox(of: name)
        guard companion.index.waiting > 0 else { return nil }
        guard discards else {
            throw CommandError(
                "ERR the database '\(companion.database.name)' has \(companion.index.waiting) entries, and they were not "
                    + "accepted for this origin: writes that waited for a former one (restore "
                    + "that from a backup), or entries of yours (store them elsewhere). PURGE in '\(companion.database.name)', or "
                    + "DISCARD as the last word, removes them. Nothing was changed")
        }
        return companion
    }

    /// Whether a database has what waits for an origin.
    func isOutbox(_ name: String) -> Bool {
        guard DatabaseName.isKept(name), isUsed else { return false }
        let owner = String(name.dropLast(DatabaseName.outboxEnding.count))
        return lock.withLock { tiers[owner]?.outbox != nil || failed[owner]?.0.writing == .behind }
    }

    /// Begins to bring what waits, unless that goes on. A larder without threads of its own leaves it to ``deliver(_:)``.
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

    /// A companion database was emptied, or some of it was. May block.
    func outboxPurged(_ companion: String) throws(LarderError) {
        guard DatabaseName.isKept(companion) else { return }
        let name = String(companion.dropLast(DatabaseName.outboxEnding.count))
        try lock.withLock { tiers[name]?.outbox }?.load()
    }

    /// Brings some of what waits for a database's origin, and waits for that. For larders without threads of their own.
    /// - Returns: in how many milliseconds there is more to do.
    @discardableResult
    func deliver(_ name: String) -> Int64? { lock.withLock { deliveries[name] }?.round() }

    // MARK: Circles

    /// The larders from this one to the last that a question about a database may reach, each with its database. Asks the
    /// origin, and returns at once.
    /// - Parameters:
    ///   - nodes: who has asked so far: where one of them is met again the way ends.
    ///   - then: called once, on any thread.
    func path(
        from name: String, behind nodes: [String], then: @escaping @Sendable ([String]) -> Void
    ) throws(CommandError) {
        let node = node(name)
        guard !nodes.contains(node), nodes.count < Self.lardersMax, let tier = try tier(of: name) else {
            return then([node])
        }
        tier.hopQueries.ask(tier.origin, nodes + [node]) { then([node] + $0) }
    }

    /// A way of questions is not followed further.
    private static let lardersMax = 64

    private func node(_ name: String) -> String { "\(larder)/\(name)" }

    /// Larders that ask each other would wait for ever.
    private func checkIsNoCircle(_ tier: OriginTier) throws(CommandError) {
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

    /// Looks again whether larders ask each other, as far as it is time to. Returns at once.
    func checkCircles() {
        for tier in all { checkCircle(tier, isUrgent: false) }
    }

    private func checkCircle(_ tier: OriginTier, isUrgent: Bool) {
        let engine = surroundings.engine
        tier.cycleDetector.ask(tier, node(tier.database.name), isUrgent: isUrgent, monotonic: { engine.monotonic() })
    }

    /// Goes on to look until the table is closed, if there is anything to look at.
    private func watchCircles() {
        guard surroundings.engine.options.backgroundMaintenance, isUsed else { return }
        lock.withLock {
            guard watch == nil, !isClosed else { return }
            watch = WorkThread(name: "larder-circles") { [self] in
                while lock.withLock({
                    if !isClosed { _ = closing.wait(lock, milliseconds: Self.watchMilliseconds) }
                    return !isClosed
                }) {
                    checkCircles()
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
            throw CommandError("ERR the origin could not be stored, nothing was changed: \(error.message)")
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
    }

    /// Ends all connections; what waits stays. May block, for as long as a call of an origin. Idempotent.
    func close() {
        let (watch, turns, candidate) = lock.withLock {
            isClosed = true
            closing.signal()
            defer { (self.watch, self.turns) = (nil, nil) }
            return (self.watch, self.turns, self.candidate)
        }
        // Nobody waits for what it would say.
        candidate?.close()
        watch?.join()
        turns?.stop()
        for delivery in lock.withLock({ Array(deliveries.values) }) { delivery.stop() }
        for tier in all { tier.close() }
    }
}
