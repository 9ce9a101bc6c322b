import LarderPlatform
import LarderRESP
import LarderWire

/// An origin that is a Redis or Valkey server, or a cluster of them.
///
/// Thread-safe. A separate thread handles the connections; see docs/Origins.md.
public final class RedisOrigin: Origin {
    /// How the servers report changes of entries.
    public enum Tracking: Hashable, Sendable {
        /// The servers remember the keys that this client has read, and report changes of these keys.
        case read
        /// The servers report changes of all keys with one of these prefixes, or of all keys if there are no prefixes.
        /// Readings of other keys have no stamp. Use this if the cache contains most entries of a database.
        case broadcast(prefixes: [[UInt8]])
        /// The servers report no changes, so readings have no stamp. Heartbeats are sent only while a server is not
        /// trusted, and after a timeout.
        case none
    }

    public let name: String
    private let parts = OriginParts()
    private let loop: SocketLoop
    private let client: RedisClient

    /// Starts to connect, without waiting.
    /// - Parameters:
    ///   - address: the address of the origin.
    ///   - secondReadAfter: a read without a reply is also sent to a replica after this time in milliseconds, or
    ///     immediately if the primary fails. A replica's reply may be older than the staleness limit, and has no stamp.
    ///     ``read(_:completion:)`` returns the first reply; ``read(_:meanwhile:completion:)`` returns replies of
    ///     replicas separately. Only for clusters. With nil, replicas get no reads.
    ///   - listener: receives the origin's notifications. It is not retained.
    public init(
        _ address: OriginAddress, limits: OriginLimits = OriginLimits(), tracking: Tracking = .read,
        secondReadAfter: Int? = nil, listener: (any OriginListener)? = nil
    ) {
        name = address.description
        var setup = HandshakeSetup()
        setup.user = address.user
        // If the file cannot be read, use the password that it had before.
        setup.password = {
            address.passwordPath.flatMap { try? OriginAddress.secret(in: $0) } ?? address.password
        }
        setup.usesTLS = address.usesTLS
        // Only invalidations need RESP3.
        setup.requiresRESP3 = tracking != .none
        setup.database = address.database == "0" ? nil : address.database
        setup.isCluster = address.isCluster
        setup.tracking =
            switch tracking {
            case .read: .read
            case .broadcast(let prefixes): .broadcast(prefixes)
            case .none: .none
            }
        loop = SocketLoop(name: "larder-origin")
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

    public func sendSideRequest(
        _ words: [[UInt8]], completion: @escaping @Sendable (Result<RESPValue, OriginError>) -> Void
    ) {
        loop.send { [client] in client.sendSideRequest(words, completion) }
    }

    public func hold(_ reason: String?) { loop.send { [client] in client.hold(reason) } }

    public func isCurrent(_ stamp: OriginStamp, now: Int64) -> Bool { parts.isCurrent(stamp, now: now) }

    /// Whether at least one server is trusted to report invalidations now.
    public func isAnyTrusted(now: Int64) -> Bool { parts.isAnyTrusted(now: now) }

    public func status() -> OriginStatus { client.report.all }

    /// Closes the origin. All later calls fail with ``OriginError/closed``. May be called on any thread.
    public func close() {
        loop.send { [client] in client.close() }
    }
}
