// Entries that were read are kept in this process, and dropped when the daemon reports a change.
//
// Why a hit is right:
// - The daemon remembers which keys were read on the tracked connection (CLIENT TRACKING) and pushes a key when it
//   changes. The push is handled before all that came behind it; it removes the entry and spoils the token of a read.
// - A read whose result is to be kept takes a token before it is sent, and passes the value with it. A token is spoilt
//   by an invalidation of its key, by a write of this client, and by the end of the connection; then the value is not
//   kept.
// - Without a connection nothing is kept and nothing returned.
// - An entry's rest of life is asked for together with its value, and counted from before the question.
// - The absence of an entry is kept by the same rules: the daemon notes the key before it looks, and storing an entry
//   is a change. Entries can become readable without a change if they are from a clock that was ahead; therefore
//   absence is kept for a minute at most.

import LarderPlatform

/// Thread-safe. The proof for `@unchecked Sendable`: every mutable property is touched only with `lock` held.
final class NearCache: @unchecked Sendable {
    /// The permission to keep the result of a read. Touched only with the cache's lock held, which is the proof for
    /// `@unchecked Sendable`.
    /// `@unchecked Sendable`.
    final class Token: @unchecked Sendable {
        fileprivate let key: [UInt8]
        fileprivate var users = 0
        fileprivate var isSpoilt = false
        fileprivate init(_ key: [UInt8]) { self.key = key }
    }

    private let lock = Lock()
    private var table: NearTable
    private var tokens: [[UInt8]: Token] = [:]
    /// Whether the daemon reports changes now.
    private var isLive = false
    private var hits = 0
    private var misses = 0
    private var invalidations = 0
    private let ageMax: Int64
    private let keepsAbsences: Bool
    /// How long the absence of an entry is believed, in milliseconds.
    private static let absenceAgeMax: Int64 = 60_000
    /// Monotonic milliseconds; tests set another source before anybody uses the cache.
    var clock: @Sendable () -> Int64 = { MonotonicClock.milliseconds() }

    init(_ options: NearCacheOptions) {
        table = NearTable(entriesMax: options.entriesMax, bytesMax: options.bytesMax)
        ageMax = options.ageMillisecondsMax.map { Int64($0) } ?? .max
        keepsAbsences = options.keepsAbsences
    }

    // MARK: Reading

    /// The answer for a key.
    enum Found<Value> {
        case value(Value)
        /// The key has no fresh entry.
        case absent
        /// The daemon must be asked.
        case unknown
    }

    /// The model of a key, or its absence, if it is known here and may be returned.
    /// - Parameter identity: of that type.
    func find<Value: Sendable>(_ type: Value.Type, _ identity: NearIdentity, _ key: some CacheKey) -> Found<Value> {
        let box = key.withKeyBytes { bytes -> AnyObject? in
            lock.lock()
            defer { lock.unlock() }
            let box = table.find(bytes, identity, now: clock)
            if box == nil { misses += 1 } else { hits += 1 }
            return box
        }
        guard let box else { return .unknown }
        if box === NearAbsence.box { return .absent }
        // Boxes are stored together with the identity of their value's type, which was compared.
        return .value(unsafeDowncast(box, to: NearBox<Value>.self).value)
    }

    /// Call it before a key is read from the daemon.
    /// - Returns: nil while nothing can be kept. Pass the result to ``keep(_:_:_:deadline:valueBytes:)`` or
    ///   ``giveUp(_:)``.
    func begin(_ key: [UInt8]) -> Token? { begin([key])?.first }

    /// Like ``begin(_:)-([UInt8])``, for several keys that are read together.
    func begin(_ keys: [[UInt8]]) -> [Token]? {
        lock.withLock {
            guard isLive else { return nil }
            return keys.map { key in
                let token = tokens[key] ?? Token(key)
                tokens[key] = token
                token.users += 1
                return token
            }
        }
    }

    /// Keeps what was read, unless it was changed meanwhile.
    /// - Parameter deadline: from when on it must not be returned, in monotonic milliseconds.
    func keep<Value: Sendable>(
        _ token: Token, _ value: Value, _ identity: NearIdentity, _ codec: ModelCodec, readAt: Int64,
        deadline: Int64, valueBytes: Int
    ) {
        keep(token, NearBox(value, codec), identity, readAt, deadline, valueBytes)
    }

    /// Keeps the absence of the key's entry, unless the key was changed meanwhile, or absence is not kept.
    func keepAbsence(_ token: Token, readAt: Int64) {
        guard keepsAbsences else { return giveUp(token) }
        let (deadline, overflows) = readAt.addingReportingOverflow(Self.absenceAgeMax)
        keep(token, NearAbsence.box, NearAbsence.identity, readAt, overflows ? .max : deadline, 0)
    }

    private func keep(
        _ token: Token, _ box: AnyObject, _ type: NearIdentity, _ readAt: Int64, _ deadline: Int64,
        _ valueBytes: Int
    ) {
        let (age, overflows) = readAt.addingReportingOverflow(ageMax)
        lock.withLock {
            release(token)
            guard !token.isSpoilt else { return }
            table.insert(
                token.key, box, type, deadline: min(deadline, overflows ? .max : age), valueBytes: valueBytes)
        }
    }

    func giveUp(_ token: Token) { lock.withLock { release(token) } }

    /// With the lock held.
    private func release(_ token: Token) {
        token.users -= 1
        if token.users == 0, tokens[token.key] === token { tokens[token.key] = nil }
    }

    // MARK: Changes

    /// The key was changed, or is being changed.
    func drop(_ key: [UInt8]) {
        lock.withLock { spoil(key) }
    }

    /// The daemon has pushed these keys, or nothing for all of them.
    func invalidate(_ keys: [[UInt8]]?) {
        lock.withLock {
            guard let keys else {
                invalidations += 1
                return spoilAll()
            }
            for key in keys { spoil(key) }
            invalidations += keys.count
        }
    }

    func dropAll() { lock.withLock { spoilAll() } }

    /// The daemon begins or stops to report changes.
    func setLive(_ live: Bool) {
        lock.withLock {
            isLive = live
            spoilAll()
        }
    }

    private func spoil(_ key: [UInt8]) {
        tokens.removeValue(forKey: key)?.isSpoilt = true
        _ = key.withUnsafeBytes { table.remove($0) }
    }

    private func spoilAll() {
        for token in tokens.values { token.isSpoilt = true }
        tokens.removeAll()
        table.removeAll()
    }

    /// The number of running reads whose value will be kept, for tests.
    var tokenCount: Int { lock.withLock { tokens.count } }

    var statistics: NearCacheStatistics {
        lock.withLock {
            NearCacheStatistics(
                entries: table.count, bytes: table.bytes, hits: hits, misses: misses, invalidations: invalidations,
                evictions: table.evictions, isLive: isLive)
        }
    }
}
