import LarderPlatform
import LarderRESP

/// A Redis or Valkey server, or a cluster of them, as an origin.
///
/// Thread-safe. Its connections run on a thread of their own; see docs/Origins.md.
public final class RedisOrigin: Origin {
    /// How the origin learns of changes.
    public enum Tracking: Hashable, Sendable {
        /// The servers track the keys that were read here, and report when one of them changes.
        case read
        /// The servers report changes of all keys with one of these prefixes, or of all keys if there are none. Other
        /// keys are never known to be current. Use it if this machine caches most entries of a database.
        case broadcast(prefixes: [[UInt8]])
        /// No invalidations, so readings have no stamp. Servers are checked only when calls take too long.
        case none
    }

    public let name: String
    private let parts = OriginParts()
    private let loop: OriginLoop
    private let client: RedisClient

    /// Starts to connect, and returns at once.
    /// - Parameters:
    ///   - address: the address of the origin.
    ///   - secondReadAfter: the time in milliseconds without a reply after which a read is also sent to a replica; a
    ///     failure of the server does so at once. The reply of a replica may be older than the staleness limit, and has
    ///     no stamp. ``read(_:completion:)`` returns the first reply; ``read(_:meanwhile:completion:)`` returns replies
    ///     of replicas separately. Nil for never. Only for clusters.
    ///   - listener: receives the origin's notifications; not retained.
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

    /// Whether invalidations are received from any of its servers.
    public func isAnyBelieved(now: Int64) -> Bool { parts.isAnyBelieved(now: now) }

    public func status() -> OriginStatus { client.report.all }

    /// Closes the origin: every later call fails with ``OriginError/closed``. May be called on any thread.
    public func close() {
        loop.send { [client] in client.close() }
    }
}
