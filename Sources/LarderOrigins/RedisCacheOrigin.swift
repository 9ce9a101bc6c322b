import Larder
import LarderPlatform

@_exported import struct LarderOriginClients.OriginAddress
import enum LarderOriginClients.OriginError
@_exported import struct LarderOriginClients.OriginLimits
import protocol LarderOriginClients.OriginListener
import struct LarderOriginClients.OriginReading
import struct LarderOriginClients.OriginStamp
@_exported import struct LarderOriginClients.OriginStatus
import struct LarderOriginClients.OriginWrite
import class LarderOriginClients.RedisOrigin

/// A Redis or Valkey server, a cluster of them, or another larder behind `larderd`, as the origin of an `OriginCache`.
///
/// ```swift
/// let origin = RedisCacheOrigin(try OriginAddress("redis+cluster://10.0.0.5:6379,10.0.0.6:6379"))
/// let prices = OriginCache(try Cache(named: "prices", policy: .middle, grace: .seconds(3_600)), origin: origin)
/// ```
/// The server says what changes. No read is older than ``OriginLimits/staleness``, 750 ms, after a write was acknowledged
/// by it, whoever wrote; else it is a stale one, of an entry with a grace. When one server of a cluster cannot say what
/// changes any more, all entries are looked up again, those of the others too.
///
/// Values are strings there: models as the cache's codec writes them, JSON by default. Those of a custom codec cannot be
/// read back.
///
/// Errors are what the server replied, or why it did not, and have a text that says so. Thread-safe.
public final class RedisCacheOrigin: CacheOrigin {
    private let redis: RedisOrigin
    private let word = Word()

    /// Begins to connect, and returns at once.
    /// - Parameters:
    ///   - address: where it is.
    ///   - limits: how long calls may take, and how often the server is asked whether it is there.
    public init(_ address: OriginAddress, limits: OriginLimits = OriginLimits()) {
        redis = RedisOrigin(address, limits: limits, listener: word)
    }

    /// Another larder of this machine: the database with a number, at the socket of its `larderd`.
    public convenience init(larderAt socketPath: String, database: Int = 0) throws {
        self.init(try OriginAddress("unix://\(socketPath)?db=\(database)"))
    }

    /// Another larder of this machine: the database with a name, which any database of the library has.
    public convenience init(larderAt socketPath: String, database: String) throws {
        self.init(try OriginAddress("unix://\(socketPath)?db=\(database)"))
    }

    deinit { redis.close() }

    public var name: String { redis.name }

    /// Yes: ``OriginLimits``, for each server.
    public var keepsLimits: Bool { true }

    /// How its servers are, and what has happened: for all caches in front of it. Asks nobody.
    public func status() -> OriginStatus { redis.status() }

    /// How many keys one call has, for which its limit holds.
    private static let keysPerCall = 4_096

    public func read(_ keys: [[UInt8]]) async throws -> [OriginAnswer] {
        var answers: [OriginAnswer] = []
        answers.reserveCapacity(keys.count)
        for start in stride(from: 0, to: keys.count, by: Self.keysPerCall) {
            let some = Array(keys[start..<min(start + Self.keysPerCall, keys.count)])
            let results = await withUnsafeContinuation { continuation in
                redis.read(some) { continuation.resume(returning: $0) }
            }
            for result in results { answers.append(try answer(try result.get())) }
        }
        return answers
    }

    private func answer(_ reading: OriginReading) throws -> OriginAnswer {
        var answer = OriginAnswer.absent
        if let value = reading.value {
            answer = OriginAnswer(value, lifetime: reading.lifetimeMilliseconds.map { .milliseconds($0) })
        }
        answer.isWatched = isWatched(reading.stamp)
        return answer
    }

    private func isWatched(_ stamp: OriginStamp?) -> Bool {
        guard let stamp, redis.isCurrent(stamp, now: MonotonicClock.nanoseconds()) else { return false }
        word.note(stamp)
        return true
    }

    public func write(_ value: OriginWriting, forKey key: [UInt8]) async throws -> OriginAcknowledgement {
        var lifetime = OriginWrite.Lifetime.unlimited
        if let duration = value.lifetime {
            let (seconds, attoseconds) = duration.components
            // A server has no shorter one, and none above some 285 years either.
            lifetime = .milliseconds(
                max(1, min(seconds, 9_000_000_000) * 1000 + attoseconds / 1_000_000_000_000_000))
        }
        let write = OriginWrite(key: key, value: value.bytes, lifetime: lifetime)
        let (result, moment) = await withUnsafeContinuation { continuation in
            // On the thread that passes on what changes: the change by this write was told before.
            redis.write(write) { continuation.resume(returning: ($0, OriginMoment.now())) }
        }
        let acknowledged = try result.get()
        var acknowledgement = OriginAcknowledgement(
            lifetime: acknowledged.lifetimeMilliseconds.map { .milliseconds($0) },
            isWatched: isWatched(acknowledged.stamp))
        // The value was read back, and nothing was told since.
        if acknowledged.isConfirmed { acknowledgement.confirmedAt = moment }
        return acknowledgement
    }

    public func remove(_ keys: [[UInt8]]) async throws {
        let result = await withUnsafeContinuation { continuation in
            redis.remove(keys) { continuation.resume(returning: $0) }
        }
        _ = try result.get()
    }

    public func mayHaveChanged(_ keys: [[UInt8]], after error: any Error) -> Bool {
        // Of several keys each server may have removed its own.
        guard keys.count == 1, let error = error as? OriginError else { return true }
        return error.isUncertain || error == .closed
    }

    public var tellsChanges: Bool { true }

    public func tellChanges(to changes: OriginChanges) async throws {
        word.add(changes)
        changes.begin()
        await changes.untilClosed()
        word.remove(changes)
    }

    public var epoch: UInt64? {
        let now = MonotonicClock.nanoseconds()
        return word.epoch(isCurrent: { redis.isCurrent($0, now: now) }, isAnyBelieved: redis.isAnyBelieved(now: now))
    }

    /// What the server says, for all caches in front of it.
    ///
    /// Thread-safe. The proof for `@unchecked Sendable`: what changes is read and written with the lock held.
    private final class Word: OriginListener, @unchecked Sendable {
        private let lock = Lock()
        private var listeners: [ObjectIdentifier: OriginChanges] = [:]
        /// One for each server that has answered in this epoch, of any of its slots: what a slot alone loses ``originLost(_:)``
        /// says. When one of them is no longer current, the epoch is over.
        private var stamps: [UInt32: OriginStamp] = [:]
        private var number: UInt64 = 0
        /// Whether a server was believed or has failed.
        private var isTried = false

        func add(_ changes: OriginChanges) { lock.withLock { listeners[ObjectIdentifier(changes)] = changes } }
        func remove(_ changes: OriginChanges) { lock.withLock { listeners[ObjectIdentifier(changes)] = nil } }

        func note(_ stamp: OriginStamp) {
            lock.withLock {
                if let former = stamps[stamp.part], former.epoch != stamp.epoch { endEpoch() }
                stamps[stamp.part] = stamp
            }
        }

        /// - Returns: nil if no server says what changes, and none is expected to in a moment.
        func epoch(isCurrent: (OriginStamp) -> Bool, isAnyBelieved: @autoclosure () -> Bool) -> UInt64? {
            lock.withLock {
                if !stamps.values.allSatisfy(isCurrent) { endEpoch() }
                if !stamps.isEmpty { return number }
                if isAnyBelieved() {
                    isTried = true
                    return number
                }
                // What is asked for while the first connection is made is answered by it.
                return isTried ? nil : number
            }
        }

        private func endEpoch() {
            number += 1
            stamps = [:]
        }

        func originInvalidated(_ keys: [[UInt8]]) {
            for changes in lock.withLock({ Array(listeners.values) }) { changes.changed(keys) }
        }

        func originLost(_ reason: String) {
            lock.withLock {
                isTried = true
                endEpoch()
            }
        }

        func originFailed(_ reason: String) { lock.withLock { isTried = true } }

        // What was lost is looked up again in any case.
        func originRecovered(_ server: String) {}
    }
}
