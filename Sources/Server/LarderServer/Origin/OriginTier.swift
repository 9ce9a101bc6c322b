import LarderEngine
import LarderOriginClients
import LarderOutboxes
import LarderPlatform
import LarderRESP
import Synchronization

/// A database in front of an origin: it asks what it does not know, keeps what it was told, and believes it for as long as the
/// origin would say that it has changed.
///
/// - There is one question a key at a time, whoever wants to know.
/// - A value is stored, and marked as known, only if nothing was said of its key since the question was sent.
/// - What has no mark is never served as fresh, whatever the larder has.
///
/// Thread-safe. The proof for `@unchecked Sendable`: a part is read and written with its lock held; ``origin`` is set once,
/// before anybody else has the tier; the rest is constant or thread-safe itself.
final class OriginTier: OriginListener, @unchecked Sendable {
    /// What the tier needs of the daemon.
    struct Surroundings: Sendable {
        let engine: Engine
        let log: Log
        /// Tells clients that keep copies that these entries have changed; nil: all of the database.
        let tell: @Sendable (Database, [[UInt8]]?) -> Void
        /// Runs what may block.
        let background: @Sendable (@escaping @Sendable () -> Void) -> Void
    }

    /// A question that was sent.
    private final class Flight {
        let key: [UInt8]
        /// Whether the answer must not be kept: the key has changed meanwhile.
        var isDetached = false
        /// What a replica has said meanwhile.
        var early: OriginReading?
        var waiters: [Waiter] = []

        init(_ key: [UInt8]) { self.key = key }
    }

    private struct Waiter: Sendable {
        let early: @Sendable (OriginReading) -> Void
        let then: @Sendable (Result<OriginReading, OriginError>) -> Void
    }

    private final class Part {
        let lock = Lock()
        var flights: [[UInt8]: Flight] = [:]
        /// Held while a value is stored, so that no older one is stored behind it.
        let storing = Lock()
    }

    let settings: OriginSettings
    let database: Database
    let limits: OriginLimits
    let counts = OriginCounts()
    /// What waits for the origin, if writes do.
    let outbox: Outbox?
    let surroundings: Surroundings
    private let marks: TrackedKeys
    private let failureLines = OriginFailureLines()
    let cycleDetector = CycleDetector()
    let hopQueries = HopQueries()
    private let parts: [Part]
    private(set) var origin: any Origin = NoOrigin()
    /// Entries that were stored before are another origin's, or nobody's: they are not served as stale either. In
    /// milliseconds since 1970, by the engine's clock, which does not go back.
    private(set) var since: Int64
    /// Whether what the origin says is stored here.
    private let keeps = Atomic<Bool>(true)

    private static let partCount = 16
    /// Longer values are given to who asked, and not kept: 1 MiB.
    private static let storedBytesMax = 1 << 20

    init(
        _ settings: OriginSettings, _ database: Database, limits: OriginLimits, keysMax: Int,
        outbox: Outbox?, _ surroundings: Surroundings
    ) {
        self.outbox = outbox
        self.settings = settings
        since = settings.since
        self.database = database
        self.limits = limits
        self.surroundings = surroundings
        marks = TrackedKeys(most: keysMax)
        parts = (0..<Self.partCount).map { _ in Part() }
    }

    /// Call it once, before anybody else has the tier.
    func begin(_ origin: any Origin) { self.origin = origin }

    func close() { origin.close() }

    /// Stores nothing from now on, because another origin takes its place; or again, because it stays.
    func keep(_ isOn: Bool) { keeps.store(isOn, ordering: .sequentiallyConsistent) }

    /// Takes a place in which there are entries that are not of this origin. Call it before anybody else has the tier.
    func begin(since instant: Int64) { since = instant }

    var keyCount: Int { marks.count }

    private func part(_ hash: Int) -> Part { parts[Int(UInt(bitPattern: hash) >> 60)] }

    // MARK: What is known

    /// What is known of a key without asking.
    enum Knowledge {
        /// What the larder has is what the origin has. If the larder has nothing, it was evicted, and nothing is known.
        case kept
        /// The origin has nothing.
        case absent
        /// What was written here waits for the origin: the outbox has it.
        case pending
        case nothing
    }

    /// - Parameters:
    ///   - now: the engine's time.
    ///   - instant: the present instant of the monotonic clock, in nanoseconds.
    func knowledge(
        _ key: UnsafeRawBufferPointer, now: Int64, instant: Int64 = MonotonicClock.nanoseconds()
    ) -> Knowledge {
        if let outbox, outbox.index.isWaiting(key) { return .pending }
        guard let mark = marks.find(Key.hash(key)),
            mark.rollbacks == surroundings.engine.rollbackCount, isBelieved(mark, instant)
        else { return .nothing }
        guard let absentUntil = mark.absentUntil else { return .kept }
        return now < absentUntil ? .absent : .nothing
    }

    private func isBelieved(_ mark: TrackedKeys.Mark, _ instant: Int64) -> Bool {
        hasLifetimes ? isYoung(mark.sentAt, instant) : origin.isCurrent(mark.stamp, now: instant)
    }

    /// Whether it is believed what the origin said, until its time is over, whatever happens there.
    private var hasLifetimes: Bool { settings.reads.hearing == .lifetimes }

    /// Whether the policy's interval has not passed since the origin was asked.
    private func isYoung(_ sentAt: Int64, _ instant: Int64) -> Bool {
        database.rules.policy.intervalMilliseconds.map { (instant - sentAt) / 1_000_000 < $0 } ?? true
    }

    /// Whether the entry was known since the daemon was started, and nothing was heard of a change since.
    func wasKnown(_ key: UnsafeRawBufferPointer) -> Bool { marks.find(Key.hash(key)) != nil }

    /// Whether a reading may answer a command that began at an instant: it is younger, or still known to be right.
    func isGood(_ reading: OriginReading, since start: Int64) -> Bool {
        if reading.sentAt >= start { return true }
        if hasLifetimes { return isYoung(reading.sentAt, MonotonicClock.nanoseconds()) }
        return reading.stamp.map { origin.isCurrent($0, now: MonotonicClock.nanoseconds()) } ?? false
    }

    /// Whether a reading is what is known of its key now: then a change is told.
    func isKnown(_ reading: OriginReading, of key: [UInt8]) -> Bool {
        guard let mark = marks.find(Key.hash(of: key)), mark.rollbacks == surroundings.engine.rollbackCount else {
            return false
        }
        return mark.sentAt == reading.sentAt && isBelieved(mark, MonotonicClock.nanoseconds())
    }

    // MARK: Asking

    /// Asks for keys, unless somebody else has.
    /// - Parameters:
    ///   - early: gets what a replica says of a key meanwhile, perhaps more than once, on any thread.
    ///   - then: called once for each key, on any thread.
    func ask(
        _ keys: [[UInt8]],
        early: @escaping @Sendable (_ key: [UInt8], OriginReading) -> Void = { _, _ in },
        then: @escaping @Sendable (_ key: [UInt8], Result<OriginReading, OriginError>) -> Void
    ) {
        var flights: [Flight] = []
        for key in keys {
            let part = part(Key.hash(of: key))
            let waiter = Waiter(early: { early(key, $0) }, then: { then(key, $0) })
            let heard = part.lock.withLock { () -> OriginReading? in
                if let flight = part.flights[key] {
                    counts.joined.add(1)
                    flight.waiters.append(waiter)
                    return flight.early
                }
                let flight = Flight(key)
                flight.waiters.append(waiter)
                part.flights[key] = flight
                flights.append(flight)
                return nil
            }
            if let heard { early(key, heard) }
        }
        guard !flights.isEmpty else { return }
        counts.asked.add(flights.count)
        let rollbacks = surroundings.engine.rollbackCount
        let asked = UncheckedFlights(flights: flights)
        origin.read(
            flights.map(\.key), meanwhile: { [self] index, reading in hear(asked.flights[index], reading) },
            completion: { [self] results in
                for (flight, result) in zip(asked.flights, results) { finish(flight, result, rollbacks) }
            })
    }

    /// A replica has answered, and the origin has not: nothing of that is kept.
    private func hear(_ flight: Flight, _ reading: OriginReading) {
        counts.replicas.add()
        let part = part(Key.hash(of: flight.key))
        let waiters = part.lock.withLock {
            flight.early = reading
            return flight.waiters
        }
        for waiter in waiters { waiter.early(reading) }
    }

    /// Flights belong to their parts: only their keys, which do not change, are used without a lock.
    private struct UncheckedFlights: @unchecked Sendable {
        let flights: [Flight]
    }

    private func finish(_ flight: Flight, _ result: Result<OriginReading, OriginError>, _ rollbacks: UInt64) {
        let hash = Key.hash(of: flight.key)
        let part = part(hash)
        if case .success(let reading) = result {
            keep(reading, flight.key, hash, part, rollbacks) { !flight.isDetached }
        } else {
            counts.failed.add(1)
        }
        // Only now can a new question be sent: what was answered is stored.
        let waiters = part.lock.withLock {
            if part.flights[flight.key] === flight { part.flights[flight.key] = nil }
            return flight.waiters
        }
        for waiter in waiters { waiter.then(result) }
    }

    // MARK: Keeping

    /// Stores what the origin has, and marks it as known.
    /// - Parameter isValid: whether that is still so; called with the part's lock held.
    private func keep(
        _ reading: OriginReading, _ key: [UInt8], _ hash: Int, _ part: Part, _ rollbacks: UInt64,
        _ isValid: () -> Bool
    ) {
        // Where nothing is heard, no part can cease to be believed.
        let believed = hasLifetimes ? OriginStamp(part: 0, epoch: 1) : reading.stamp
        guard let stamp = believed, part.lock.withLock(isValid) else { return }
        let now = surroundings.engine.now()
        let elapsed = (MonotonicClock.nanoseconds() - reading.sentAt) / 1_000_000
        let left = reading.lifetimeMilliseconds.map { $0 - elapsed }
        var absentUntil: Int64?
        if let value = reading.value, left ?? 1 > 0 {
            // Another value of these keys is being stored: the next reader asks again.
            guard part.storing.tryLock() else { return }
            defer { part.storing.unlock() }
            guard part.lock.withLock(isValid), store(value, key, left, now) else { return }
        } else {
            if reading.value == nil { forget(key) }
            absentUntil = now + (database.rules.policy.intervalMilliseconds ?? UpdatePolicy.longestMilliseconds)
        }
        part.lock.withLock {
            guard isValid() else { return }
            marks.set(
                hash,
                TrackedKeys.Mark(
                    stamp: stamp, absentUntil: absentUntil, rollbacks: rollbacks, sentAt: reading.sentAt))
        }
    }

    /// No entry lives longer than at the origin, nor than the policy says.
    /// - Parameters:
    ///   - left: the rest of the lifetime at the origin, in milliseconds; nil if it does not expire there.
    ///   - now: the engine's time.
    private func rule(_ left: Int64?, _ now: Int64) -> DeadlineRule {
        let interval = database.rules.policy.intervalMilliseconds ?? .max
        return left.map { $0 < interval ? .own(now + max(0, $0)) : .governed } ?? .governed
    }

    /// The rule of what the origin has answered, as if it were kept now.
    func rule(of reading: OriginReading, now: Int64) -> DeadlineRule { rule(reading.lifetimeMilliseconds, now) }

    /// - Returns: whether the larder has it now. A long value, or one for which files must be opened, is not stored: this
    ///   thread must not block.
    private func store(_ value: [UInt8], _ key: [UInt8], _ left: Int64?, _ now: Int64) -> Bool {
        guard value.count <= Self.storedBytesMax, keeps.load(ordering: .sequentiallyConsistent) else { return false }
        guard database.isReady(forWriting: true) else {
            surroundings.background { [database] in try? database.prepare(forWriting: true) }
            return false
        }
        guard !surroundings.engine.pipeline.isCongested else { return false }
        let rule = rule(left, now)
        return key.withUnsafeBytes { key in
            value.withUnsafeBytes { value in
                (try? database.put(key, payload: value, rule: rule, now: now)) != nil
            }
        }
    }

    /// Removes what the larder has of a key that the origin has not.
    private func forget(_ key: [UInt8]) {
        let key = Key(key)
        var ticket = CommitTicket.none
        let now = surroundings.engine.now()
        guard (try? database.removeInMemory([key], now: now, ticket: &ticket)) == nil else { return }
        surroundings.background { [database, surroundings] in
            _ = try? database.perform([key], .headers, .mayBlock, now: surroundings.engine.now()) { $0.removeStored(0) }
        }
    }

    // MARK: Writing

    /// Stores a value at the origin, and here if it says when that changes.
    func write(_ write: OriginWrite, then: @escaping @Sendable (Result<RESPValue, OriginError>) -> Void) {
        drop(write.key)
        let rollbacks = surroundings.engine.rollbackCount
        let isKept = settings.writing != .around
        let write = OriginWrite(key: write.key, value: write.value, lifetime: write.lifetime, isKept: isKept)
        origin.write(write) { [self] result in
            drop(write.key)
            surroundings.tell(database, [write.key])
            if case .success(let answer) = result {
                counts.written.add()
                if isKept { keep(write, answer, rollbacks) { true } }
            }
            then(result.map { _ in .simpleString("OK") })
        }
    }

    private func keep(
        _ write: OriginWrite, _ answer: OriginAcknowledgement, _ rollbacks: UInt64, _ isLast: () -> Bool
    ) {
        guard answer.isConfirmed else { return }
        let reading = OriginReading(
            value: write.value, lifetimeMilliseconds: answer.lifetimeMilliseconds, sentAt: answer.sentAt,
            stamp: answer.stamp)
        let hash = Key.hash(of: write.key)
        let part = part(hash)
        keep(reading, write.key, hash, part, rollbacks) { part.flights[write.key] == nil && isLast() }
    }

    /// Removes entries at the origin and here.
    func remove(_ keys: [[UInt8]], then: @escaping @Sendable (Result<RESPValue, OriginError>) -> Void) {
        drop(keys)
        origin.remove(keys) { [self] result in
            drop(keys)
            if case .success = result {
                counts.written.add()
                for key in keys { forget(key) }
            }
            surroundings.tell(database, keys)
            then(result.map { .integer(Int64($0)) })
        }
    }

    /// Runs a command at the origin that may change keys.
    func perform(
        _ words: [[UInt8]], changing keys: [[UInt8]],
        then: @escaping @Sendable (Result<RESPValue, OriginError>) -> Void
    ) {
        drop(keys)
        origin.perform(words, key: keys.first) { [self] result in
            drop(keys)
            if case .success = result { counts.written.add() }
            if !keys.isEmpty { surroundings.tell(database, keys) }
            then(result)
        }
    }

    /// Runs a script or a function at the origin. Its reply comes when all is heard that was said of its changes.
    /// - Parameter otherWords: the same with the script's text, for an origin that does not know it; nil if nobody here does.
    func run(
        script words: [[UInt8]], orElse otherWords: [[UInt8]]?, changing keys: [[UInt8]],
        then: @escaping @Sendable (Result<RESPValue, OriginError>) -> Void
    ) {
        perform(words, changing: keys) { [self] result in
            if let otherWords, case .failure(.refused(let error)) = result,
                error.hasPrefix("NOSCRIPT No matching script")
            {
                return run(script: otherWords, orElse: nil, changing: keys, then: then)
            }
            if case .failure(.refused(let error)) = result, error.hasPrefix("ERR Function not found") {
                return then(.failure(.refused(Self.unknownFunction)))
            }
            origin.settle(keys.first) { then(result) }
        }
    }

    private static let unknownFunction =
        "ERR Function not found at the origin, which runs the functions of this database: FUNCTION LOAD here does not bring "
        + "them there; load it at the origin itself"

    /// Runs commands at the origin as a transaction. If there are scripts, the reply comes when all is heard that was said of
    /// their changes.
    func perform(
        transaction commands: [[[UInt8]]], hasScripts: Bool, changing keys: [[UInt8]],
        then: @escaping @Sendable (Result<RESPValue, OriginError>) -> Void
    ) {
        drop(keys)
        origin.perform(transaction: commands, keys: keys) { [self] result in
            drop(keys)
            if case .success = result { counts.written.add() }
            surroundings.tell(database, keys)
            if hasScripts { origin.settle(keys.first) { then(result) } } else { then(result) }
        }
    }

    // MARK: Bringing what waits

    /// Entries have been written here, and wait for the origin.
    func hasWrittenHere(_ keys: [[UInt8]]) {
        drop(keys)
        counts.written.add()
        surroundings.tell(database, keys)
    }

    /// Stores a value at the origin that was written here before.
    /// - Parameter isLast: whether the key was not written again.
    func deliver(
        _ write: OriginWrite, isLast: @escaping @Sendable () -> Bool,
        then: @escaping @Sendable (Result<OriginAcknowledgement, OriginError>) -> Void
    ) {
        let rollbacks = surroundings.engine.rollbackCount
        origin.write(write) { [self] result in
            drop(write.key)
            if case .success(let answer) = result { keep(write, answer, rollbacks, isLast) }
            then(result)
        }
    }

    /// Removes an entry at the origin that was removed here before.
    func deliver(removalOf key: [UInt8], then: @escaping @Sendable (Result<Int, OriginError>) -> Void) {
        origin.remove([key]) { [self] result in
            drop(key)
            then(result)
        }
    }

    /// Runs a command at the origin that repeats a write of a key.
    func repeatWrite(
        _ words: [[UInt8]], _ key: [UInt8], then: @escaping @Sendable (Result<RESPValue, OriginError>) -> Void
    ) {
        origin.perform(words, key: key) { [self] result in
            drop(key)
            then(result)
        }
    }

    // MARK: What the origin says

    /// A key is no longer known; what is being asked for it is not kept.
    private func drop(_ key: [UInt8]) {
        let hash = Key.hash(of: key)
        let part = part(hash)
        part.lock.withLock {
            // Who asks from now on asks anew.
            if let flight = part.flights.removeValue(forKey: key) { flight.isDetached = true }
            marks.remove(hash)
        }
    }

    private func drop(_ keys: [[UInt8]]) {
        for key in keys { drop(key) }
    }

    func originInvalidated(_ keys: [[UInt8]]) {
        counts.invalidated.add(keys.count)
        drop(keys)
        surroundings.tell(database, keys)
    }

    func originLost(_ reason: String) {
        counts.lost.add(1)
        // The next attempt to connect may fail for the same reason, which is no news then.
        _ = failureLines.line(reason, at: surroundings.engine.monotonic())
        if hasLifetimes {
            return surroundings.log.warning("database '\(database.name)': its origin does not answer: \(reason)")
        }
        surroundings.log.warning("database '\(database.name)': its origin is no longer believed: \(reason)")
        // Clients that keep copies were promised to hear of changes.
        surroundings.tell(database, nil)
    }

    func originFailed(_ reason: String) {
        guard let skipped = failureLines.line(reason, at: surroundings.engine.monotonic()) else { return }
        surroundings.log.warning(
            "database '\(database.name)': its origin cannot be asked: \(reason)"
                + LineRate.rest(skipped, "failed attempts"))
    }

    func originRecovered(_ server: String) {
        failureLines.forget()
        surroundings.log.info("database '\(database.name)': its origin answers again: \(server)")
        outbox?.index.originRecovered()
    }
}

extension Key {
    fileprivate static func hash(of bytes: [UInt8]) -> Int { bytes.withUnsafeBytes { hash($0) } }
}
