// Keeps entries that were read in this process, and drops them when the daemon reports a change.
//
// Why a hit is correct:
// - The daemon remembers which keys were read on the tracked connection (CLIENT TRACKING) and pushes a key when it
//   changes. The client handles the push before all later replies: it removes the entry.
// - A read takes a token before its request is sent, and passes the token with the value that it read. The value is not
//   kept if meanwhile the daemon has pushed its key, this client has written the key, or the connection has ended: see
//   `InvalidationTracker`.
// - Without a connection, nothing is kept, and nothing is returned from the cache.
// - An entry's remaining lifetime is requested together with its value, and counted from the time before the request
//   was sent.
// - The absence of an entry is kept by the same rules: the daemon registers the key before the lookup, and storing an
//   entry is a change. There is one exception: an entry that was stored while the daemon's clock was ahead can become
//   readable later without a reported change. Therefore absence is kept for at most a minute.

import LarderPlatform
import LarderVocabulary

/// The near cache of one database: see the top of this file.
///
/// Thread-safe. `@unchecked Sendable`: every mutable property is guarded by `lock`.
final class NearCache: @unchecked Sendable {
    /// A permission to keep the result of a read.
    struct Token: Sendable {
        fileprivate let key: [UInt8]
        /// When the read began: see `InvalidationTracker`.
        fileprivate let began: UInt64
    }

    private let lock = Lock()
    private var table: NearTable
    private var tracker = InvalidationTracker<[UInt8]>()
    private var hits = 0
    private var misses = 0
    private var invalidations = 0
    private let ageMax: Int64
    private let keepsAbsences: Bool
    /// How long the absence of an entry is kept, in milliseconds.
    private static let absenceAgeMax: Int64 = 60_000
    /// Returns the monotonic time in milliseconds. Tests set another clock before the first use of the cache.
    var clock: @Sendable () -> Int64 = { MonotonicClock.milliseconds() }

    init(_ options: NearCacheOptions) {
        table = NearTable(entriesMax: options.entriesMax, bytesMax: options.bytesMax)
        ageMax = options.ageMillisecondsMax.map { Int64($0) } ?? .max
        keepsAbsences = options.keepsAbsences
    }

    // MARK: Reading

    /// The result of a lookup.
    enum Found<Value> {
        case value(Value)
        /// The key has no fresh entry.
        case absent
        /// The key must be read from the daemon.
        case unknown
    }

    /// Looks up what is known about a key: its model, or that it has no entry.
    /// - Parameter identity: the identity of the type and its codec.
    func find<Value: Sendable>(_ type: Value.Type, _ identity: NearIdentity, _ key: some CacheKey) -> Found<Value> {
        let box = key.withKeyBytes { bytes -> AnyObject? in
            lock.lock()
            defer { lock.unlock() }
            let box = table.find(bytes, identity, now: clock)
            if box == nil { misses += 1 } else { hits += 1 }
            return box
        }
        guard let box else { return .unknown }
        if box === NearIdentity.absenceBox { return .absent }
        // Safe: `find` has compared the identity of the value's type, which is stored together with the box.
        return .value(unsafeDowncast(box, to: NearBox<Value>.self).value)
    }

    /// Begins a read of a key from the daemon; call it before the request is sent.
    /// - Returns: nil if nothing can be kept, because the daemon currently reports no changes. Otherwise pass the token
    ///   to ``keep(_:_:_:deadline:valueBytes:)`` or ``giveUp(_:)``.
    func begin(_ key: [UInt8]) -> Token? { begin([key])?.first }

    /// Like ``begin(_:)-([UInt8])``, for several keys that are read together.
    func begin(_ keys: [[UInt8]]) -> [Token]? {
        lock.withLock {
            guard tracker.epoch != nil else { return nil }
            let began = tracker.begin(keys.count)
            return keys.map { Token(key: $0, began: began) }
        }
    }

    /// Keeps a value that was read, unless its key was changed in the meantime.
    /// - Parameter deadline: when the entry expires, in monotonic milliseconds.
    func keep<Value: Sendable>(
        _ token: Token, _ value: Value, _ identity: NearIdentity, _ codec: ModelCodec, readAt: Int64,
        deadline: Int64, valueBytes: Int
    ) {
        keep(token, NearBox(value, codec), identity, readAt, deadline, valueBytes)
    }

    /// Keeps the fact that a key has no entry, unless the key was changed in the meantime, or
    /// ``NearCacheOptions/keepsAbsences`` is false.
    func keepAbsence(_ token: Token, readAt: Int64) {
        guard keepsAbsences else { return giveUp(token) }
        let (deadline, overflows) = readAt.addingReportingOverflow(Self.absenceAgeMax)
        keep(token, NearIdentity.absenceBox, NearIdentity.absence, readAt, overflows ? .max : deadline, 0)
    }

    private func keep(
        _ token: Token, _ box: AnyObject, _ type: NearIdentity, _ readAt: Int64, _ deadline: Int64,
        _ valueBytes: Int
    ) {
        let (age, overflows) = readAt.addingReportingOverflow(ageMax)
        lock.withLock {
            defer { tracker.end() }
            guard tracker.isCurrent(token.key, since: token.began) else { return }
            table.insert(
                token.key, box, type, deadline: min(deadline, overflows ? .max : age), valueBytes: valueBytes)
        }
    }

    func giveUp(_ token: Token) { lock.withLock { tracker.end() } }

    // MARK: Changes

    /// Drops a key that was changed or is being changed.
    func drop(_ key: [UInt8]) {
        lock.withLock { drop(CollectionOfOne(key)) }
    }

    /// Drops what a request has changed, whether or not it has succeeded. The caller then reads its own writes, and
    /// results of running reads of these keys are not kept.
    func drop<Result>(_ request: Request<Result>) {
        if request.changesAll { dropAll() }
        for key in request.changed { drop(key) }
    }

    /// Drops the keys that the daemon has pushed; nil for all keys.
    func invalidate(_ keys: [[UInt8]]?) {
        lock.withLock {
            guard let keys else {
                invalidations += 1
                return forgetAll()
            }
            drop(keys)
            invalidations += keys.count
        }
    }

    func dropAll() { lock.withLock { forgetAll() } }

    /// Records whether the daemon currently reports changes, and drops all entries.
    func setLive(_ live: Bool) {
        lock.withLock {
            if live { tracker.listen() } else { tracker.lose() }
            table.removeAll()
        }
    }

    private func drop(_ keys: some Collection<[UInt8]>) {
        tracker.changed(keys)
        for key in keys { _ = key.withUnsafeBytes { table.remove($0) } }
    }

    private func forgetAll() {
        tracker.changedAll()
        table.removeAll()
    }

    /// The number of running reads, for tests.
    var tokenCount: Int { lock.withLock { tracker.running } }

    var statistics: NearCacheStatistics {
        lock.withLock {
            NearCacheStatistics(
                entries: table.count, bytes: table.bytes, hits: hits, misses: misses, invalidations: invalidations,
                evictions: table.evictions, isLive: tracker.epoch != nil)
        }
    }
}
