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

/// An `OriginCache` origin: a Redis or Valkey server or cluster, or another larder served by `larderd`.
///
/// ```swift
/// let origin = RedisCacheOrigin(try OriginAddress("redis+cluster://10.0.0.5:6379,10.0.0.6:6379"))
/// let prices = OriginCache(try Cache(named: "prices", policy: .middle, grace: .seconds(3_600)), origin: origin)
/// ```
/// The server reports changes. After the server has acknowledged a write by any client and ``OriginLimits/staleness``
/// (750 ms) has passed, no read returns an older value as fresh. Within a grace, an older value may be returned as
/// stale. If one server of a cluster can no longer report changes, the entries from all its servers must be read again.
///
/// Values are strings at the server: models as encoded by the cache's codec, by default JSON. Values of a custom codec
/// cannot be read back, because the server does not store their codec.
///
/// Errors contain the server's reply, or the reason why there is none. Thread-safe.
public final class RedisCacheOrigin: CacheOrigin {
    private let redis: RedisOrigin
    private let word = Word()

    /// Starts to connect, and does not wait for the connection.
    /// - Parameters:
    ///   - address: the address of the server.
    ///   - limits: the time limits of calls, and the interval of the heartbeat.
    public init(_ address: OriginAddress, limits: OriginLimits = OriginLimits()) {
        redis = RedisOrigin(address, limits: limits, listener: word)
    }

    /// Connects to another larder of this machine: a numbered database, at the socket of its `larderd`.
    public convenience init(larderAt socketPath: String, database: Int = 0) throws {
        self.init(try OriginAddress("unix://\(socketPath)?db=\(database)"))
    }

    /// Connects to another larder of this machine: a named database. All databases of the library have names.
    public convenience init(larderAt socketPath: String, database: String) throws {
        self.init(try OriginAddress("unix://\(socketPath)?db=\(database)"))
    }

    deinit { redis.close() }

    public var name: String { redis.name }

    /// True: ``OriginLimits`` apply to each server.
    public var keepsLimits: Bool { true }

    /// Returns the state of the servers and their counters, for all caches that use this origin. Sends no request.
    public func status() -> OriginStatus { redis.status() }

    /// The maximum number of keys per call to the servers. If there are more, each call has the full time limit.
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
            // Clamp the lifetime: a server supports none below a millisecond, and none above about 285 years.
            lifetime = .milliseconds(
                max(1, min(seconds, 9_000_000_000) * 1000 + attoseconds / 1_000_000_000_000_000))
        }
        let write = OriginWrite(key: key, value: value.bytes, lifetime: lifetime)
        let (result, moment) = await withUnsafeContinuation { continuation in
            // The closure is called on the thread that delivers notifications, after the notification of this write.
            redis.write(write) { continuation.resume(returning: ($0, OriginMoment.now())) }
        }
        let acknowledged = try result.get()
        var acknowledgement = OriginAcknowledgement(
            lifetime: acknowledged.lifetimeMilliseconds.map { .milliseconds($0) },
            isWatched: isWatched(acknowledged.stamp))
        // A write is confirmed if the value was read back, and no change has been reported since.
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
        // With several keys, one server of a cluster may have removed its keys, although another server failed.
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
        return word.epoch(isCurrent: { redis.isCurrent($0, now: now) }, isAnyTrusted: redis.isAnyTrusted(now: now))
    }

    /// Passes the servers' notifications on to all caches that use this origin.
    ///
    /// Thread-safe.
    private final class Word: OriginListener, Sendable {
        private struct State {
            var listeners: [ObjectIdentifier: OriginChanges] = [:]
            /// For each server that has answered in this epoch, the stamp of one of its replies. A stamp is current
            /// while the server can report changes. The epoch ends when a stamp is no longer current, or in
            /// ``originLost(_:)``. If a server loses a single hash slot, its stamp may stay current, but
            /// ``originLost(_:)`` is called then too.
            var stamps: [UInt32: OriginStamp] = [:]
            var number: UInt64 = 0
            /// Whether any server has ever been connected or has failed.
            var isTried = false

            mutating func endEpoch() {
                number += 1
                stamps = [:]
            }
        }

        private let state = Locked(State())

        func add(_ changes: OriginChanges) { state.withLock { $0.listeners[ObjectIdentifier(changes)] = changes } }
        func remove(_ changes: OriginChanges) { state.withLock { $0.listeners[ObjectIdentifier(changes)] = nil } }

        func note(_ stamp: OriginStamp) {
            state.withLock { state in
                if let previous = state.stamps[stamp.part], previous.epoch != stamp.epoch { state.endEpoch() }
                state.stamps[stamp.part] = stamp
            }
        }

        /// Returns the number of the current epoch; nil if a server has been tried and none reports changes.
        func epoch(isCurrent: (OriginStamp) -> Bool, isAnyTrusted: @autoclosure () -> Bool) -> UInt64? {
            state.withLock { state in
                if !state.stamps.values.allSatisfy(isCurrent) { state.endEpoch() }
                if !state.stamps.isEmpty { return state.number }
                if isAnyTrusted() {
                    state.isTried = true
                    return state.number
                }
                // While the first connection is being made, requests wait for it, so their replies belong to this
                // epoch.
                return state.isTried ? nil : state.number
            }
        }

        func originInvalidated(_ keys: [[UInt8]]) {
            for changes in state.withLock({ Array($0.listeners.values) }) { changes.changed(keys) }
        }

        func originLost(_ reason: String) {
            state.withLock { state in
                state.isTried = true
                state.endEpoch()
            }
        }

        func originFailed(_ reason: String) { state.withLock { $0.isTried = true } }

        // Nothing to do: the epoch ended when the server was lost, so all entries must be verified again in any case.
        func originRecovered(_ server: String) {}
    }
}
