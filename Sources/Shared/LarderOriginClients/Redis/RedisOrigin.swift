import LarderPlatform
import LarderRESP

/// A Redis or Valkey server, or a cluster of them, behind a cache.
///
/// Thread-safe. A thread of its own has the connections; see docs/Origins.md.
public final class RedisOrigin: Origin {
    /// How changes are heard of.
    public enum Tracking: Hashable, Sendable {
        /// The servers note which keys were read here, and say when one of them changes.
        case read
        /// The servers say when any key with one of these prefixes changes, or any key at all if there are none: what is
        /// read of others is not known to be current. For databases of which this machine has most entries.
        case broadcast(prefixes: [[UInt8]])
        /// Nobody says anything, and no reading has a stamp. Servers are asked whether they are there only when calls take
        /// too long.
        case none
    }

    public let name: String
    private let parts = OriginParts()
    private let loop: OriginLoop
    private let client: RedisClient

    /// Begins to connect, and returns at once.
    /// - Parameters:
    ///   - address: where it is.
    ///   - secondReadAfter: after so many milliseconds without an answer, or when its server fails, a read is asked of a
    ///     replica too. What a replica says may be older than the bound, and has no stamp. ``read(_:completion:)`` takes the
    ///     first answer, ``read(_:meanwhile:completion:)`` tells them apart. Nil for never; only for clusters.
    ///   - listener: hears what the origin says; not kept alive by it.
    public init(
        _ address: OriginAddress, limits: OriginLimits = OriginLimits(), tracking: Tracking = .read,
        secondReadAfter: Int? = nil, listener: (any OriginListener)? = nil
    ) {
        name = address.description
        var setup = RedisSetup()
        setup.user = address.user
        setup.password = address.password
        setup.passwordPath = address.passwordPath
        setup.usesTLS = address.usesTLS
        setup.database = address.database
        setup.isCluster = address.isCluster
        setup.tracking =
            switch tracking {
            case .read: .read
            case .broadcast(let prefixes): .broadcast(prefixes)
            case .none: .none
            }
        loop = OriginLoop()
        client = RedisClient(
            loop, address, RedisSettings(limits: limits, setup: setup, secondReadAfter: secondReadAfter), parts,
            listener)
        loop.send { [client] in client.start() }
    }

    deinit {
        loop.send { [client, loop] in
            client.close()
            loop.end()
        }
    }

    public func read(
        _ keys: [[UInt8]], completion: @escaping @Sendable ([Result<OriginReading, OriginError>]) -> Void
    ) {
        let now = MonotonicClock.nanoseconds()
        loop.send { [client] in client.read(keys, from: now, meanwhile: nil, completion) }
    }

    public func read(
        _ keys: [[UInt8]], meanwhile: @escaping @Sendable (_ index: Int, OriginReading) -> Void,
        completion: @escaping @Sendable ([Result<OriginReading, OriginError>]) -> Void
    ) {
        let now = MonotonicClock.nanoseconds()
        loop.send { [client] in client.read(keys, from: now, meanwhile: meanwhile, completion) }
    }

    public func write(
        _ write: OriginWrite, completion: @escaping @Sendable (Result<OriginAcknowledgement, OriginError>) -> Void
    ) {
        let now = MonotonicClock.nanoseconds()
        loop.send { [client] in client.write(write, from: now, completion) }
    }

    public func remove(_ keys: [[UInt8]], completion: @escaping @Sendable (Result<Int, OriginError>) -> Void) {
        let now = MonotonicClock.nanoseconds()
        loop.send { [client] in client.remove(keys, from: now, completion) }
    }

    public func perform(
        _ words: [[UInt8]], key: [UInt8]?, completion: @escaping @Sendable (Result<RESPValue, OriginError>) -> Void
    ) {
        let now = MonotonicClock.nanoseconds()
        loop.send { [client] in client.perform(words, key: key, from: now, completion) }
    }

    public func perform(
        transaction commands: [[[UInt8]]], keys: [[UInt8]],
        completion: @escaping @Sendable (Result<RESPValue, OriginError>) -> Void
    ) {
        let now = MonotonicClock.nanoseconds()
        loop.send { [client] in client.perform(transaction: commands, keys: keys, from: now, completion) }
    }

    public func settle(_ key: [UInt8]?, completion: @escaping @Sendable () -> Void) {
        loop.send { [client] in client.settle(key, completion) }
    }

    public func inquire(
        _ words: [[UInt8]], completion: @escaping @Sendable (Result<RESPValue, OriginError>) -> Void
    ) {
        loop.send { [client] in client.inquire(words, completion) }
    }

    public func hold(_ reason: String?) { loop.send { [client] in client.hold(reason) } }

    public func isCurrent(_ stamp: OriginStamp, now: Int64) -> Bool { parts.isCurrent(stamp, now: now) }

    /// Whether any of its servers says what changes.
    public func isAnyBelieved(now: Int64) -> Bool { parts.isAnyBelieved(now: now) }

    public func status() -> OriginStatus { client.report.all }

    /// Afterwards every call fails with ``OriginError/closed``. May be called on any thread.
    public func close() {
        loop.send { [client] in client.close() }
    }
}
