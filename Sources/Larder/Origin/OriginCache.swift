import LarderEngine
import LarderFetching
import LarderPlatform

/// A cache in front of an origin: a read that the cache cannot answer asks the origin, once for all who want the key.
///
/// ```swift
/// let prices = OriginCache(try Cache(named: "prices", policy: .middle, grace: .seconds(3_600)), origin: origin)
/// let price = try await prices.value(Price.self, forKey: "apple")      // nil if the origin has none
/// ```
///
/// - An entry lives until the earlier of what the policy says and of what the origin says, counted from the moment in which
///   the origin was asked.
/// - If the origin says what changes (``CacheOrigin/tellsChanges``), an entry is fresh only as long as the origin is known
///   to have the same. When the origin cannot say so any more, everything is *unverified* at once: looked up again at its
///   first read, and served within its grace, as a stale value, only if the origin cannot answer. So is what a program
///   finds on the disk when it starts.
/// - What the origin has no value for is remembered too, for ``FetchOptions/absent``.
/// - Nothing is stored that was asked for before the origin said that it changed.
///
/// Reads of the ``cache`` itself see what is stored and fresh, and do not ask what the origin has said lately. What is
/// written to it by itself is not the origin's.
///
/// Thread-safe.
public final class OriginCache: Sendable {
    /// How values get to the origin.
    public enum Writing: Hashable, Sendable {
        /// A write returns when the origin has acknowledged it, and the value is kept here too. The default.
        case through
        /// A write returns when the origin has acknowledged it, and the next read asks for it.
        case around
    }

    /// The tag with which entries are stored whose origin says what changes. They have it beside their own.
    public static let tag = InvalidationEpoch.tag

    /// The cache in front.
    public let cache: Cache
    /// What is asked.
    public let origin: any CacheOrigin
    /// How values get to the origin.
    public let writing: Writing
    /// How calls fetch that do not say it.
    public let options: FetchOptions
    let trust: InvalidationEpoch
    let limiter: OriginLimiter
    let changes: OriginChanges
    private let listener: Task<Void, Never>?

    /// ``FetchOptions`` that wait for the origin, ten seconds at most, and leave a key for which it has failed alone for a
    /// second. Writes take as long as ``OriginCacheLimits/call`` allows.
    public static var standardOptions: FetchOptions {
        var options = FetchOptions()
        options.softTimeout = nil
        options.hardTimeout = .seconds(10)
        options.backOff = .seconds(1)
        return options
    }

    /// Puts a cache in front of an origin. Asks nothing yet.
    /// - Parameters:
    ///   - cache: used by this object alone as long as it exists. Its policy says how long entries live, its grace for how
    ///     long they serve while the origin cannot answer.
    ///   - origin: what is asked.
    ///   - writing: how values get there.
    ///   - options: how calls fetch that do not say it.
    ///   - limits: how long calls of the origin may take, and when it is left alone because it has failed.
    public init(
        _ cache: Cache, origin: some CacheOrigin, writing: Writing = .through,
        options: FetchOptions = OriginCache.standardOptions, limits: OriginCacheLimits = OriginCacheLimits()
    ) {
        self.cache = cache
        self.origin = origin
        self.writing = writing
        self.options = options
        trust = InvalidationEpoch(isTold: origin.tellsChanges) { origin.epoch }
        limiter = OriginLimiter(origin, limits, cache.source.database)
        changes = OriginChanges(trust, cache.source.database)
        guard trust.isTold else {
            listener = nil
            return
        }
        listener = Task { [origin, changes] in
            var failures = 0
            while !Task.isCancelled {
                try? await origin.tellChanges(to: changes)
                if changes.lose() { failures = 0 }
                // Longer each time, and never the same for many.
                let longest = min(30_000, 100 << min(failures, 16))
                try? await Task.sleep(for: .milliseconds(Int.random(in: (longest / 2)...longest)))
                failures += 1
            }
        }
    }

    deinit { endListening() }

    private func endListening() {
        listener?.cancel()
        changes.end()
    }

    /// Stops to hear what the origin says, and closes the cache. Idempotent. Calls that wait for the origin fail at once with
    /// ``LarderError/Code/closed``, and their tasks are cancelled: a write may have been done, or be done later. Those of
    /// origins that keep limits themselves (``CacheOrigin/keepsLimits``) end within these.
    public func close() {
        endListening()
        changes.lost()
        cache.close()
        limiter.close()
    }

    /// Whether the origin says what changes, as far as it is known, so that what it answers now may be kept. Always true for
    /// origins that never say it.
    public var isBelieved: Bool { trust.epoch.isBelieved }

    /// How the origin is: whether it rests, and what calls to it came to. Asks nobody; costs a lock.
    public var status: OriginCacheStatus { limiter.status }

    // MARK: Reading

    /// The model of a key: what the cache has, else what the origin has, which is then kept.
    /// - Parameters:
    ///   - type: the model's type. May be left out if the context determines it.
    ///   - key: the entry's key.
    ///   - options: nil for ``options``. With a ``FetchOptions/softTimeout`` of zero an unverified value is served at once, as
    ///     any other stale one.
    /// - Returns: nil if the origin has no value.
    /// - Throws: what the origin throws, or ``OriginFailure`` if it rests or took too long, if there is nothing to serve
    ///   instead; what ``Cache`` throws for a closure that
    ///   fetches; ``LarderError/Code/decoding`` if what the origin has is no such model: nothing is kept then.
    public func value<Value: Codable & Sendable>(
        _ type: Value.Type = Value.self, forKey key: some CacheKey, options: FetchOptions? = nil
    ) async throws -> Value? {
        let options = options ?? self.options
        let began = MonotonicClock.milliseconds()
        try await settle(CollectionOfOne(key))
        if options.takesAnyFresh {
            var endsSoon = false
            if let (model, sequence) = cache.keptModel(type, key, endsSoon: &endsSoon) {
                if sequence != 0 { try await cache.source.taskWaitsForCommit(sequence) }
                if endsSoon { refreshAhead(type, key, options) }
                return model
            }
        }
        return try await fetched(type, key, options, since: began)
    }

    /// The models of several keys: those that the cache has, and for all others what the origin answers to one question.
    /// Keys for which it has nothing are left out. Parameters and errors as for `value(_:forKey:options:)`.
    public func values<Key: CacheKey & Hashable & Sendable, Value: Codable & Sendable>(
        _ type: Value.Type = Value.self, forKeys keys: some Sequence<Key>, options: FetchOptions? = nil
    ) async throws -> [Key: Value] {
        let options = options ?? self.options
        let began = MonotonicClock.milliseconds()
        var seen: Set<Key> = []
        let keys = keys.filter { seen.insert($0).inserted }
        try await settle(keys)
        if options.source == .ignoreCache || options.source == .cacheOnly || keys.isEmpty {
            var found: [Key: Value] = [:]
            for key in keys { found[key] = try await fetched(type, key, options, since: began) }
            return found
        }
        var found: [Key: Value] = [:]
        if options.takesAnyFresh {
            found =
                try await cache.source.decodable(options) { () async throws(LarderError) in
                    try await cache.values(type, forKeys: keys)
                } ?? [:]
        }
        var backends: [(key: Key, backend: OriginFetch<Value>)] = []
        for key in keys where found[key] == nil {
            backends.append((key, try backend(key, isCounted: options.takesAnyFresh)))
        }
        guard let first = backends.first else { return found }
        let checked = try CheckedFetch(options, first.backend.name)
        let call = trust.beginCall()
        defer { trust.endCall() }
        let fetched = try await FlightTable.shared.values(backends, checked, since: began) { [self] keys in
            let answers = try await ask(type, keys.map(\.keyBytes), since: began)
            return Dictionary(uniqueKeysWithValues: zip(keys, answers))
        }
        for (key, backend) in backends {
            guard var each = fetched[key] else { continue }
            if isOutdated(each, call, backend.base.key) {
                guard let again = try await answer(backend, checked, call, since: began) else { continue }
                each = again
            }
            found[key] = each.model
        }
        return found
    }

    /// Makes the database agree with what the origin has said, unless it does.
    func settle(_ keys: some Sequence<some CacheKey>) async throws(LarderError) {
        // What is said while it is settled is the next call's.
        guard !trust.isSettled(keys) else { return }
        let (trust, source) = (trust, cache.source)
        try await BlockingWork.run { () throws(LarderError) in
            try source.whileOpen("fetch") { (_) throws(LarderError) in try trust.settle(source.database) }
        }
    }
}
