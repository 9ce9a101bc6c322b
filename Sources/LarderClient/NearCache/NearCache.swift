// Entries that were read, kept in this process, and dropped when the daemon says that they changed.
//
// What makes a hit true:
// - The daemon remembers which keys were read on the tracked connection (CLIENT TRACKING) and pushes the key when it
//   changes. The push is taken before anything that came behind it, and removes the entry and spoils its token.
// - A read that is to be kept takes a token before it is sent and hands the value in with it. A token is spoilt by an
//   invalidation of its key, by a write of this client, and by the end of the connection: such a value is not kept.
// - While the connection is not there nothing is kept and nothing handed out.
// - An entry's own end is asked for together with its value and counted from before the question.
// - That a key has no entry is kept by the same rules: the daemon notes the key before it looks, and what stores an entry
//   under it is a change. What becomes readable without a change, entries from a clock that was ahead, is the reason why
//   it is kept for a minute at the most.

import Threading

/// Thread-safe. The proof for `@unchecked Sendable`: every mutable property is touched only with `lock` held.
final class NearCache: @unchecked Sendable {
    /// The permission to keep what a read brings. Touched only with the cache's lock held, which is the proof for
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
    /// Whether the daemon tells of changes now.
    private var isLive = false
    private var hits = 0
    private var misses = 0
    private var invalidations = 0
    private let ageMax: Int64
    private let keepsAbsences: Bool
    /// How long it is believed that a key has no entry, in milliseconds.
    private static let absenceAgeMax: Int64 = 60_000
    /// Monotonic milliseconds; tests set another one before anybody else uses the cache.
    var clock: @Sendable () -> Int64 = { StreamSocket.monotonicMilliseconds() }

    init(_ options: NearCacheOptions) {
        table = NearTable(entriesMax: options.entriesMax, bytesMax: options.bytesMax)
        ageMax = options.ageMillisecondsMax.map { Int64($0) } ?? .max
        keepsAbsences = options.keepsAbsences
    }

    // MARK: Reading

    /// What is known of a key.
    enum Found<Value> {
        case value(Value)
        /// It has no fresh entry.
        case absent
        /// The daemon is to be asked.
        case unknown
    }

    /// The model of a key, or that there is none, if it is here and may be handed out.
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

    /// To be called before a key is read from the daemon.
    /// - Returns: nil while nothing can be kept. What is returned must be given to ``keep(_:_:_:deadline:valueBytes:)``
    ///   or ``giveUp(_:)``.
    func begin(_ key: [UInt8]) -> Token? { begin([key])?.first }

    /// As ``begin(_:)-([UInt8])``, for several keys that are read together.
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
    /// - Parameter deadline: from when on it is not to be handed out, in monotonic milliseconds.
    func keep<Value: Sendable>(
        _ token: Token, _ value: Value, _ identity: NearIdentity, _ codec: ModelCodec, readAt: Int64,
        deadline: Int64, valueBytes: Int
    ) {
        keep(token, NearBox(value, codec), identity, readAt, deadline, valueBytes)
    }

    /// Keeps that the key has no entry, unless it was changed meanwhile, or absent keys are not to be kept.
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

    /// The key was changed, or is just being changed.
    func drop(_ key: [UInt8]) {
        lock.withLock { spoil(key) }
    }

    /// What the daemon pushed: keys, or nothing for all of them.
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

    /// The daemon begins, or ceases, to tell of changes.
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

    /// Reads under way whose value is to be kept, for tests.
    var tokenCount: Int { lock.withLock { tokens.count } }

    var statistics: NearCacheStatistics {
        lock.withLock {
            NearCacheStatistics(
                entries: table.count, bytes: table.bytes, hits: hits, misses: misses, invalidations: invalidations,
                evictions: table.evictions, isLive: isLive)
        }
    }
}
