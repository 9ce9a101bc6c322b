import LarderEngine
import LarderOriginClients
import LarderOutboxes
import LarderPlatform
import LarderRESP
import LarderVocabulary
import Synchronization

/// A database in front of an origin, as a read-through cache.
///
/// - A read of a key that is not cached is sent to the origin. There is at most one request per key at a time.
/// - A value is cached, and gets a *mark*, only if its key was not invalidated after the request was sent.
/// - The mark means that the entry is current. An entry without a mark is read again before it is served as fresh.
/// - Losing a mark costs only one request. Therefore the number of marks is limited; the oldest are removed.
///
/// Marks identify keys by a 64-bit hash with a secret of this process. The probability that two of a million keys have
/// the same hash is less than 10⁻⁷.
///
/// `@unchecked Sendable`: the parts have their own locks. ``origin`` and ``since`` are set before other threads can use
/// the tier. Everything else is constant or thread-safe.
final class OriginTier: OriginListener, @unchecked Sendable {
    /// The parts of the daemon that a tier uses.
    struct Surroundings: Sendable {
        let engine: Engine
        let log: Log
        /// Notifies tracking clients that the entries with these keys have changed. Nil means all entries of the
        /// database.
        let notify: @Sendable (Database, [[UInt8]]?) -> Void
        /// Runs work that may block.
        let background: @Sendable (@escaping @Sendable () -> Void) -> Void
    }

    /// A running request for one key.
    private final class Flight: Sendable {
        let key: [UInt8]
        let hash: Int
        /// When the request was sent: see ``InvalidationTracker``.
        let began: UInt64
        /// The reply of a replica, until the primary's reply arrives, and the calls that wait.
        let state: Locked<(early: OriginReading?, calls: [OriginCall])>

        init(_ key: [UInt8], _ hash: Int, began: UInt64, _ call: OriginCall?) {
            (self.key, self.hash, self.began) = (key, hash, began)
            state = Locked((nil, call.map { [$0] } ?? []))
        }
    }

    /// When and how a cached entry was read.
    private struct Mark {
        let stamp: OriginStamp
        /// If the origin has no value for the key: the time until which the key is assumed to be absent, in
        /// milliseconds since 1970. Nil if the key has a value.
        let absentUntil: Int64?
        /// The engine's count of rollbacks before the value was stored. If the count has changed since, a rollback may
        /// have removed the value.
        let rollbacks: UInt64
        /// When the request was sent, in nanoseconds of the monotonic clock.
        let sentAt: Int64
    }

    /// What is known about a sixteenth of the keys.
    private final class Part {
        /// Guards the variables.
        let lock = Lock()
        var marks: BoundedTable<Int, Mark>
        var flights: [[UInt8]: Flight] = [:]
        /// The invalidated keys, by their hashes. The loss of the listener is detected by the stamps of the replies.
        var tracker = InvalidationTracker<Int>(isListening: true)
        /// Locked while a value is stored, so that an older value cannot overwrite a newer one.
        let storing = Lock()

        init(marksMax: Int) { marks = BoundedTable(most: marksMax) }

        /// Whether the reply to a request may be cached, because its key was not invalidated meanwhile.
        func isCurrent(_ flight: Flight) -> Bool { tracker.isCurrent(flight.hash, since: flight.began) }

        /// Returns the running request for a key, if new readers may join it.
        func current(_ key: [UInt8]) -> Flight? { flights[key].flatMap { isCurrent($0) ? $0 : nil } }
    }

    let settings: OriginSettings
    let database: Database
    let limits: OriginLimits
    let counts = OriginCounts()
    /// The writes that wait for delivery to the origin; nil unless the database uses write-behind.
    let outbox: Outbox?
    let surroundings: Surroundings
    private let failureLines: LimitedLines
    let cycleDetector = CycleDetector()
    let hopQueries = HopQueries()
    private let parts: [Part]
    private(set) var origin: any Origin = NoOrigin()
    /// Entries stored before this time come from another origin, or were written while there was none. They are not
    /// served, not even as stale entries. In milliseconds since 1970, by the engine's clock.
    private(set) var since: Int64
    /// Whether replies of the origin may be cached.
    private let keeps = Atomic<Bool>(true)

    private static let partCount = 16
    /// The maximum length of a cached value, in bytes: 1 MiB. Longer values are only passed to the client.
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
        let engine = surroundings.engine
        failureLines = LimitedLines(
            surroundings.log, each: 60_000, burst: 1, clock: { engine.monotonic() },
            rest: { LineRate.rest($0, "failed attempts") })
        parts = (0..<Self.partCount).map { _ in Part(marksMax: (keysMax + Self.partCount - 1) / Self.partCount) }
    }

    /// Sets the origin. Call this once, before other threads can use the tier.
    func begin(_ origin: any Origin) { self.origin = origin }

    func close() { origin.close() }

    /// Disables caching of replies while the origin is being replaced, or enables it again if the origin stays.
    func keep(_ isOn: Bool) { keeps.store(isOn, ordering: .sequentiallyConsistent) }

    /// Sets ``since``: entries stored before this instant come from another origin, and are not served. Call this
    /// before other threads can use the tier.
    func begin(since instant: Int64) { since = instant }

    var keyCount: Int { parts.reduce(0) { sum, part in sum + part.lock.withLock { part.marks.count } } }

    /// Returns the part for a hash. Uses the highest bits of the hash, because the part's tables use the lower bits.
    private func part(_ hash: Int) -> Part { parts[Int(UInt(bitPattern: hash) >> 60)] }

    private func mark(_ hash: Int) -> Mark? {
        let part = part(hash)
        return part.lock.withLock { part.marks[hash] }
    }

    // MARK: State of keys

    /// What the daemon knows about a key without a request to the origin.
    enum Knowledge {
        /// If an entry of this key is cached, the entry is current. If not, it was evicted, and must be read again.
        case kept
        /// The origin has no value for this key.
        case absent
        /// A write of the key is queued in the outbox.
        case pending
        case nothing
    }

    /// Returns what is known about a key.
    /// - Parameters:
    ///   - now: the engine's time, in milliseconds.
    ///   - instant: the current time of the monotonic clock, in nanoseconds.
    func knowledge(
        _ key: UnsafeRawBufferPointer, now: Int64, instant: Int64 = MonotonicClock.nanoseconds()
    ) -> Knowledge {
        if let outbox, outbox.index.isWaiting(key) { return .pending }
        guard let mark = mark(Key.hash(key)),
            mark.rollbacks == surroundings.engine.rollbackCount, isTrusted(mark, instant)
        else { return .nothing }
        guard let absentUntil = mark.absentUntil else { return .kept }
        return now < absentUntil ? .absent : .nothing
    }

    private func isTrusted(_ mark: Mark, _ instant: Int64) -> Bool {
        hasLifetimes ? isYoung(mark.sentAt, instant) : origin.isCurrent(mark.stamp, now: instant)
    }

    /// Whether an entry's freshness depends only on its age, because the origin sends no invalidations.
    private var hasLifetimes: Bool { settings.reads.hearing == .lifetimes }

    /// How long an entry may still be served as fresh after its value has changed at the origin, in milliseconds; nil
    /// for no limit.
    var staleness: Int64? { hasLifetimes ? database.rules.policy.intervalMilliseconds : Int64(limits.staleness) }

    /// Whether an entry that was requested at `sentAt` is fresh, if the origin sends no invalidations.
    private func isYoung(_ sentAt: Int64, _ instant: Int64) -> Bool {
        staleness.map { (instant - sentAt) / 1_000_000 < $0 } ?? true
    }

    /// Whether the key has a mark: an entry was current at some time since the start, and was not invalidated later.
    func wasKnown(_ key: UnsafeRawBufferPointer) -> Bool { mark(Key.hash(key)) != nil }

    /// Whether a value may be returned to a command that started at `start`: the value was requested after `start`, or
    /// is still current.
    func isValid(_ reading: OriginReading, since start: Int64) -> Bool {
        if reading.sentAt >= start { return true }
        if hasLifetimes { return isYoung(reading.sentAt, MonotonicClock.nanoseconds()) }
        return reading.stamp.map { origin.isCurrent($0, now: MonotonicClock.nanoseconds()) } ?? false
    }

    /// Whether a value that was read is still marked as current. If so, the origin will send an invalidation when the
    /// value changes.
    func isKnown(_ reading: OriginReading, of key: [UInt8]) -> Bool {
        guard let mark = mark(Key.hash(of: key)), mark.rollbacks == surroundings.engine.rollbackCount else {
            return false
        }
        return mark.sentAt == reading.sentAt && isTrusted(mark, MonotonicClock.nanoseconds())
    }

    // MARK: Requests

    /// Reads keys from the origin. For a key that is being read already, waits for that request's reply.
    /// - Parameter call: receives the replies; nil if they are only cached.
    func ask(_ keys: [[UInt8]], for call: OriginCall?) {
        var flights: [Flight] = []
        for key in keys {
            let hash = Key.hash(of: key)
            let part = part(hash)
            let early = part.lock.withLock { () -> OriginReading? in
                if let flight = part.current(key) {
                    counts.joined.add(1)
                    return flight.state.withLock {
                        if let call { $0.calls.append(call) }
                        return $0.early
                    }
                }
                let flight = Flight(key, hash, began: part.tracker.begin(), call)
                part.flights[key] = flight
                flights.append(flight)
                return nil
            }
            if let early { call?.take(key, early: early) }
        }
        guard !flights.isEmpty else { return }
        counts.asked.add(flights.count)
        let rollbacks = surroundings.engine.rollbackCount
        origin.read(
            flights.map(\.key), meanwhile: { [self, flights] index, reading in hear(flights[index], reading) },
            completion: { [self, flights] results in
                for (flight, result) in zip(flights, results) { finish(flight, result, rollbacks) }
            })
    }

    /// Passes on the reply of a replica that arrives before the primary's reply. The value is not cached.
    private func hear(_ flight: Flight, _ reading: OriginReading) {
        counts.replicas.add()
        let calls = flight.state.withLock {
            $0.early = reading
            return $0.calls
        }
        for call in calls { call.take(flight.key, early: reading) }
    }

    private func finish(_ flight: Flight, _ result: Result<OriginReading, OriginError>, _ rollbacks: UInt64) {
        let part = part(flight.hash)
        if case .success(let reading) = result {
            keep(reading, flight.key, flight.hash, part, rollbacks) { part.isCurrent(flight) }
        } else {
            counts.failed.add(1)
        }
        // Remove the flight only after its value was stored: otherwise a reader in between would send a second request.
        part.lock.withLock {
            part.tracker.end()
            if part.flights[flight.key] === flight { part.flights[flight.key] = nil }
        }
        for call in flight.state.withLock({ $0.calls }) { call.take(flight.key, result) }
    }

    // MARK: Caching

    /// Caches a value of the origin, and marks it as current.
    /// - Parameter isValid: returns whether the value may still be cached; called with the part's `lock` held.
    private func keep(
        _ reading: OriginReading, _ key: [UInt8], _ hash: Int, _ part: Part, _ rollbacks: UInt64,
        _ isValid: () -> Bool
    ) {
        // Without invalidations from the origin, marks outlast the connection: use the same stamp for all marks.
        let believed = hasLifetimes ? OriginStamp(part: 0, epoch: 1) : reading.stamp
        guard let stamp = believed, part.lock.withLock(isValid) else { return }
        let now = surroundings.engine.now()
        let elapsed = (MonotonicClock.nanoseconds() - reading.sentAt) / 1_000_000
        let left = reading.lifetimeMilliseconds.map { $0 - elapsed }
        var absentUntil: Int64?
        if let value = reading.value, left ?? 1 > 0 {
            // If another thread is storing a value in this part, do not wait, because this thread must not block. The
            // next reader of the key requests the value again.
            guard part.storing.tryLock() else { return }
            defer { part.storing.unlock() }
            guard part.lock.withLock(isValid), store(value, key, left, now) else { return }
        } else {
            if reading.value == nil { forget(key) }
            absentUntil = now + (database.rules.policy.intervalMilliseconds ?? UpdatePolicy.longestMilliseconds)
        }
        part.lock.withLock {
            guard isValid() else { return }
            part.marks[hash] = Mark(
                stamp: stamp, absentUntil: absentUntil, rollbacks: rollbacks, sentAt: reading.sentAt)
        }
    }

    /// Returns the deadline rule of a cached value. The value expires at the origin's deadline or at the policy's
    /// deadline, whichever is earlier.
    /// - Parameters:
    ///   - left: the remaining lifetime at the origin, in milliseconds; nil if the value does not expire there. A
    ///     lifetime that is longer than any policy counts as nil.
    ///   - now: the engine's time, in milliseconds.
    private func rule(_ left: Int64?, _ now: Int64) -> DeadlineRule {
        let interval = database.rules.policy.intervalMilliseconds ?? UpdatePolicy.longestMilliseconds
        return left.map { $0 < interval ? .own(now + max(0, $0)) : .governed } ?? .governed
    }

    /// The deadline rule that a value would get if it were cached now.
    func rule(of reading: OriginReading, now: Int64) -> DeadlineRule { rule(reading.lifetimeMilliseconds, now) }

    /// Stores a value without blocking. Does not store a long value, or a value for which files must be opened first.
    /// - Returns: whether the value was stored.
    private func store(_ value: [UInt8], _ key: [UInt8], _ left: Int64?, _ now: Int64) -> Bool {
        guard value.count <= Self.storedBytesMax, keeps.load(ordering: .sequentiallyConsistent) else { return false }
        guard database.isReady(forWriting: true) else {
            surroundings.background { [database] in try? database.prepare(forWriting: true) }
            return false
        }
        guard !surroundings.engine.pipeline.isCongested else { return false }
        let rule = rule(left, now)
        let ticket = value.withUnsafeBytes { value in
            try? database.perform([Key(key)], .none, .memoryOnly, now: now, needsFiles: true) {
                $0.put(0, payload: value, rule: rule)
            }
        }
        return ticket != nil
    }

    /// Removes the cached entry of a key that has no value at the origin.
    private func forget(_ key: [UInt8]) {
        let key = Key(key)
        @Sendable func remove(_ access: Access) -> CommitTicket? {
            try? database.perform([key], .headers, access, now: surroundings.engine.now()) { $0.removeStored(0) }
        }
        if remove(.memoryOnly) == nil { surroundings.background { _ = remove(.mayBlock) } }
    }

    // MARK: Writing

    /// Prepares a request that may change keys at the origin: their cached values are no longer served as current.
    /// - Parameter then: called with the result, after the keys were reported as changed.
    /// - Returns: the completion to pass to the origin.
    private func changing<Value>(
        _ keys: [[UInt8]], then: @escaping @Sendable (Result<Value, OriginError>) -> Void
    ) -> @Sendable (Result<Value, OriginError>) -> Void {
        drop(keys)
        return { [self] result in
            drop(keys)
            if case .success = result { counts.written.add() }
            if !keys.isEmpty { surroundings.notify(database, keys) }
            then(result)
        }
    }

    /// Sends a write to the origin. If the write succeeds, also caches the value, except with write-around.
    func write(_ write: OriginWrite, then: @escaping @Sendable (Result<RESPValue, OriginError>) -> Void) {
        let rollbacks = surroundings.engine.rollbackCount
        let isKept = settings.writing != .around
        let write = OriginWrite(key: write.key, value: write.value, lifetime: write.lifetime, isKept: isKept)
        let completion = changing([write.key]) { [self] (result: Result<OriginAcknowledgement, OriginError>) in
            if case .success(let answer) = result, isKept { keep(write, answer, rollbacks) { true } }
            then(result.map { _ in .simpleString("OK") })
        }
        origin.write(write, completion: completion)
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
        keep(reading, write.key, hash, part, rollbacks) { part.current(write.key) == nil && isLast() }
    }

    /// Removes keys at the origin, then their cached entries.
    func remove(_ keys: [[UInt8]], then: @escaping @Sendable (Result<RESPValue, OriginError>) -> Void) {
        let completion = changing(keys) { [self] (result: Result<Int, OriginError>) in
            if case .success = result { for key in keys { forget(key) } }
            then(result.map { .integer(Int64($0)) })
        }
        origin.remove(keys, completion: completion)
    }

    /// Runs a command at the origin.
    /// - Parameter keys: the keys that the command may change. Their cached values are no longer served as current.
    func perform(
        _ words: [[UInt8]], changing keys: [[UInt8]],
        then: @escaping @Sendable (Result<RESPValue, OriginError>) -> Void
    ) {
        origin.perform(words, key: keys.first, completion: changing(keys, then: then))
    }

    /// Runs a script or a function at the origin. `then` gets the reply only after all invalidations that the script
    /// caused were received.
    /// - Parameter otherWords: the same call with the script's source, for an origin that lacks the script; nil if the
    ///   source is unknown.
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
        "ERR Function not found at the origin, which runs the functions of this database: load it at the origin; "
        + "FUNCTION LOAD here has no effect there"

    /// Runs commands at the origin as a transaction. If some commands are scripts, `then` gets the reply only after all
    /// invalidations that the scripts caused were received.
    func perform(
        transaction commands: [[[UInt8]]], hasScripts: Bool, changing keys: [[UInt8]],
        then: @escaping @Sendable (Result<RESPValue, OriginError>) -> Void
    ) {
        let completion = changing(keys) { [self] (result: Result<RESPValue, OriginError>) in
            if hasScripts { origin.settle(keys.first) { then(result) } } else { then(result) }
        }
        origin.perform(transaction: commands, keys: keys, completion: completion)
    }

    // MARK: Delivering queued writes

    /// Called after a command has written these keys here, and has queued the writes for the origin (write-behind).
    func hasWrittenHere(_ keys: [[UInt8]]) {
        drop(keys)
        counts.written.add()
        surroundings.notify(database, keys)
    }

    /// Delivers a queued write to the origin.
    /// - Parameter isLast: returns whether this write is still the latest write of its key.
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

    func deliver(removalOf key: [UInt8], then: @escaping @Sendable (Result<Int, OriginError>) -> Void) {
        origin.remove([key]) { [self] result in
            drop(key)
            then(result)
        }
    }

    /// Repeats a write at the origin. The first attempt has failed, or may have failed.
    func repeatWrite(
        _ words: [[UInt8]], _ key: [UInt8], then: @escaping @Sendable (Result<RESPValue, OriginError>) -> Void
    ) {
        origin.perform(words, key: key) { [self] result in
            drop(key)
            then(result)
        }
    }

    // MARK: Invalidations

    /// Removes the mark of a key. If a request for the key is running, its reply will not be cached, and new readers of
    /// the key send a new request.
    private func drop(_ key: [UInt8]) {
        let hash = Key.hash(of: key)
        let part = part(hash)
        part.lock.withLock {
            part.tracker.changed(CollectionOfOne(hash))
            part.marks[hash] = nil
        }
    }

    private func drop(_ keys: [[UInt8]]) {
        for key in keys { drop(key) }
    }

    func originInvalidated(_ keys: [[UInt8]]) {
        counts.invalidated.add(keys.count)
        drop(keys)
        surroundings.notify(database, keys)
    }

    func originLost(_ reason: String) {
        counts.lost.add(1)
        // Count this line for the rate limit too: the next attempt to connect may fail for the same reason.
        failureLines.count(reason)
        if hasLifetimes {
            return surroundings.log.warning("database '\(database.name)': its origin is not available: \(reason)")
        }
        surroundings.log.warning(
            "database '\(database.name)': lost its origin's invalidations; cached entries are revalidated: \(reason)")
        // Notify tracking clients too: the daemon may have missed invalidations of keys that they have cached.
        surroundings.notify(database, nil)
    }

    func originFailed(_ reason: String) {
        failureLines.add(
            .warning, "database '\(database.name)': its origin is not available: \(reason)", kind: reason)
    }

    func originRecovered(_ server: String) {
        failureLines.forget()
        surroundings.log.info("database '\(database.name)': its origin is available again: \(server)")
        outbox?.index.originRecovered()
    }
}

extension Key {
    fileprivate static func hash(of bytes: [UInt8]) -> Int { bytes.withUnsafeBytes { hash($0) } }
}

/// A placeholder until the origin is connected. All its calls fail.
final class NoOrigin: Origin {
    var name: String { "none" }

    func read(_ keys: [[UInt8]], completion: @escaping @Sendable ([Result<OriginReading, OriginError>]) -> Void) {
        completion(keys.map { _ in .failure(.closed) })
    }

    func write(
        _ write: OriginWrite, completion: @escaping @Sendable (Result<OriginAcknowledgement, OriginError>) -> Void
    ) {
        completion(.failure(.closed))
    }

    func remove(_ keys: [[UInt8]], completion: @escaping @Sendable (Result<Int, OriginError>) -> Void) {
        completion(.failure(.closed))
    }

    func perform(
        _ words: [[UInt8]], key: [UInt8]?, completion: @escaping @Sendable (Result<RESPValue, OriginError>) -> Void
    ) {
        completion(.failure(.closed))
    }

    func isCurrent(_ stamp: OriginStamp, now: Int64) -> Bool { false }

    func status() -> OriginStatus { OriginStatus() }

    func close() {}
}

/// The counters of a database's origin, for INFO. Atomic.
final class OriginCounts: Sendable {
    /// `asked`: keys requested from the origin. `joined`: keys for which a request was already running.
    let asked = Atomic<Int>(0)
    let joined = Atomic<Int>(0)
    let failed = Atomic<Int>(0)
    /// Stale entries served because the origin was not available.
    let stale = Atomic<Int>(0)
    /// `replicas`: replies of replicas that came before the primary's reply. `replicasServed`: how many of these
    /// replies were sent to clients.
    let replicas = Atomic<Int>(0)
    let replicasServed = Atomic<Int>(0)
    /// Write commands that the origin has executed, or that were queued in the outbox.
    let written = Atomic<Int>(0)
    /// `invalidated`: keys invalidated by the origin. `lost`: lost connections, after which no entry counts as current.
    let invalidated = Atomic<Int>(0)
    let lost = Atomic<Int>(0)
}
