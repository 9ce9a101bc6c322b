import LarderEngine
import LarderFetching
import LarderPlatform

/// A read-through cache in front of an origin. Concurrent misses of a key share one request to the origin.
///
/// ```swift
/// let prices = OriginCache(try Cache(named: "prices", policy: .middle, grace: .seconds(3_600)), origin: origin)
/// let price = try await prices.value(Price.self, forKey: "apple")      // nil if the origin has none
/// ```
///
/// - An entry lives for the shorter of its policy's and the origin's lifetime, counted from the start of the request.
/// - If the origin reports changes (``CacheOrigin/tellsChanges``), an entry is fresh only while the origin is known to
///   have the same value. When notifications are interrupted, all entries become *unverified*. The first read of an
///   unverified entry asks the origin again. If the origin cannot answer, the read returns the entry as a stale value,
///   within its grace. Entries from a previous run of the program are unverified too.
/// - The absence of a value at the origin is remembered for ``FetchOptions/absent``.
/// - A reply is not cached if its key was reported as changed after the request was sent.
///
/// Reads of the ``cache`` itself return fresh entries without considering the origin's latest notifications. Values
/// that are written directly to the ``cache`` do not reach the origin.
///
/// Thread-safe.
public final class OriginCache: Sendable {
    /// How values are written to the origin.
    public enum Writing: Hashable, Sendable {
        /// Write-through: a write returns after the origin has acknowledged it, and the value is cached. The default.
        case through
        /// Write-around: a write returns after the origin has acknowledged it, and the next read asks the origin.
        case around
    }

    /// The tag of all entries from an origin that reports changes, in addition to their own tags.
    public static let tag = InvalidationEpoch.tag

    /// The cache in front of the origin.
    public let cache: Cache
    /// The origin from which missing values are read.
    public let origin: any CacheOrigin
    /// How values are written to the origin.
    public let writing: Writing
    /// The default fetch options of calls.
    public let options: FetchOptions
    let trust: InvalidationEpoch
    let limiter: OriginLimiter
    let changes: OriginChanges
    private let listener: Task<Void, Never>?
    private let ending = EndSignal()

    /// The default ``FetchOptions``: calls wait for the origin for at most ten seconds. After a failed read of a key,
    /// the key is not requested again for a second. ``OriginCacheLimits/call`` limits writes.
    public static var standardOptions: FetchOptions {
        var options = FetchOptions()
        options.softTimeout = nil
        options.hardTimeout = .seconds(10)
        options.backOff = .seconds(1)
        return options
    }

    /// Puts a cache in front of an origin. Sends no request yet.
    /// - Parameters:
    ///   - cache: must be used by this object alone while the object exists. Its policy defines how long entries live,
    ///     its grace how long they are served while the origin cannot answer.
    ///   - origin: the origin from which missing values are read.
    ///   - writing: how values are written to the origin.
    ///   - options: the default fetch options of calls.
    ///   - limits: the time limit of calls to the origin, and its circuit breaker.
    public init(
        _ cache: Cache, origin: some CacheOrigin, writing: Writing = .through,
        options: FetchOptions = OriginCache.standardOptions, limits: OriginCacheLimits = OriginCacheLimits()
    ) {
        self.cache = cache
        self.origin = origin
        self.writing = writing
        self.options = options
        trust = InvalidationEpoch(isNotified: origin.tellsChanges) { origin.epoch }
        limiter = OriginLimiter(origin, limits, cache.source)
        changes = OriginChanges(trust, cache.source.database)
        guard trust.isNotified else {
            listener = nil
            return
        }
        listener = Task { [origin, changes] in
            var failures = 0
            while !Task.isCancelled {
                try? await origin.tellChanges(to: changes)
                if changes.lose() { failures = 0 }
                try? await Task.sleep(for: .milliseconds(RetryBackoff.rest(after: failures)))
                failures += 1
            }
        }
    }

    deinit { endListening() }

    private func endListening() {
        listener?.cancel()
        changes.end()
    }

    /// Stops listening for changes, and closes the cache. Idempotent. Calls that wait for the origin immediately throw
    /// ``LarderError/Code/closed``, and their tasks are cancelled. A cancelled write may still take effect at the
    /// origin. Calls to origins with limits of their own (``CacheOrigin/keepsLimits``) end within those limits.
    public func close() {
        ending.set()
        endListening()
        changes.lost()
        cache.close()
        limiter.close()
    }

    /// Runs until ``shutdown()`` or ``close()`` is called or the task is cancelled, and then closes the cache. After
    /// ``shutdown()`` it first waits for running reads and writes that involve the origin, for at most
    /// ``OriginCacheLimits/call``. Never throws; has the form that ServiceLifecycle's `Service` requires.
    public func run() async throws {
        await ending.wait()
        await EndSignal.poll(milliseconds: limiter.limits.call) { trust.callCount == 0 }
        await BlockingWork.run { self.close() }
    }

    /// Makes ``run()`` end gracefully, now or when it is called. Returns at once.
    public func shutdown() { ending.set() }

    /// Whether replies may be cached now, because the origin is reporting changes. Always true for origins that never
    /// report changes.
    public var receivesChanges: Bool { trust.epoch.receivesChanges }

    /// The old name of ``receivesChanges``.
    @available(*, deprecated, renamed: "receivesChanges")
    public var isBelieved: Bool { receivesChanges }

    /// The state of the circuit breaker, and call counters. Does not call the origin; takes a lock.
    public var status: OriginCacheStatus { limiter.status }

    // MARK: Reading

    /// Returns the model of a key from the cache, or reads it from the origin and caches it.
    /// - Parameters:
    ///   - type: the model's type. May be omitted if the context determines it.
    ///   - key: the entry's key.
    ///   - options: nil for ``options``. With a ``FetchOptions/softTimeout`` of zero, an unverified value is returned
    ///     without waiting, like any other stale value.
    /// - Returns: nil if the origin has no value.
    /// - Throws: errors of the origin, or ``OriginFailure`` if its circuit breaker is open or the call took too long.
    ///   These errors are thrown only if there is no stale value to return. Also the errors of ``Cache`` for calls with
    ///   a fetch closure. ``LarderError/Code/decoding`` if the origin's value is not a model of this type; such a value
    ///   is not cached.
    public func value<Value: Codable & Sendable>(
        _ type: Value.Type = Value.self, forKey key: some CacheKey, options: FetchOptions? = nil
    ) async throws -> Value? {
        let options = options ?? self.options
        let began = MonotonicClock.milliseconds()
        try await applyNotifications(for: CollectionOfOne(key))
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

    /// Returns the models of several keys. All keys that are not cached are read from the origin with one request. Keys
    /// without a value are missing from the result. Parameters and errors as for `value(_:forKey:options:)`.
    public func values<Key: CacheKey & Hashable & Sendable, Value: Codable & Sendable>(
        _ type: Value.Type = Value.self, forKeys keys: some Sequence<Key>, options: FetchOptions? = nil
    ) async throws -> [Key: Value] {
        let options = options ?? self.options
        let began = MonotonicClock.milliseconds()
        var seen: Set<Key> = []
        let keys = keys.filter { seen.insert($0).inserted }
        try await applyNotifications(for: keys)
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

    /// Makes the database reflect all notifications of the origin, unless it already does.
    func applyNotifications(for keys: some Sequence<some CacheKey>) async throws(LarderError) {
        // Notifications that arrive later are handled by the next call.
        guard !trust.isSettled(keys) else { return }
        let (trust, source) = (trust, cache.source)
        try await BlockingWork.run { () throws(LarderError) in
            try source.whileOpen("fetch") { (_) throws(LarderError) in try trust.applyNotifications(to: source.database)
            }
        }
    }
}
