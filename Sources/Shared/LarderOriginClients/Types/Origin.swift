import LarderRESP

/// A server with the authoritative data, some of which is cached. It may be slow or fail.
///
/// All methods return immediately; any thread may call them. Each completion is called exactly once, on a thread of the
/// origin, at the latest after ``OriginLimits/call``, and must not block. Completions and the listener are called in
/// the order of the server's messages: an invalidation sent before a reply is delivered before that reply.
public protocol Origin: AnyObject, Sendable {
    /// The name of the origin in messages: its address without secrets.
    var name: String { get }

    /// Reads entries, and subscribes to their changes if the origin supports that.
    /// - Parameter completion: receives a result for each key, in the order of `keys`. The result for an absent key is
    ///   a success without a value.
    func read(_ keys: [[UInt8]], completion: @escaping @Sendable ([Result<OriginReading, OriginError>]) -> Void)

    /// Like ``read(_:completion:)``, but also reports replies of replicas that arrive before the primary's reply.
    /// Values from replicas may be arbitrarily old. The completion gets the primary's replies.
    /// - Parameter meanwhile: receives a replica's reply and the index of its key in `keys`. Called at most once for
    ///   each key, and before the completion.
    func read(
        _ keys: [[UInt8]], meanwhile: @escaping @Sendable (_ index: Int, OriginReading) -> Void,
        completion: @escaping @Sendable ([Result<OriginReading, OriginError>]) -> Void)

    /// Stores a value.
    /// - Parameter completion: called when the origin has acknowledged the write, or the write has failed.
    func write(
        _ write: OriginWrite, completion: @escaping @Sendable (Result<OriginAcknowledgement, OriginError>) -> Void)

    /// Removes entries.
    /// - Parameter completion: receives the number of entries removed.
    func remove(_ keys: [[UInt8]], completion: @escaping @Sendable (Result<Int, OriginError>) -> Void)

    /// Sends any command to the origin, such as INCR. The reply is not cached.
    /// - Parameters:
    ///   - words: the name of the command, followed by its arguments.
    ///   - key: a key of the command, which selects the server in a cluster; nil if the command has none.
    ///   - completion: receives the reply; an error reply is ``OriginError/refused(_:)``.
    func perform(
        _ words: [[UInt8]], key: [UInt8]?, completion: @escaping @Sendable (Result<RESPValue, OriginError>) -> Void)

    /// Runs commands as a transaction of the origin (MULTI and EXEC): no commands of other clients run between them.
    /// - Parameters:
    ///   - commands: the commands, each as for ``perform(_:key:completion:)``.
    ///   - keys: all keys of the commands. In a cluster, they must be in the same slot.
    ///   - completion: receives an array of the replies, or an error. After an error no command was executed, unless
    ///     ``OriginError/isUncertain`` is true.
    func perform(
        transaction commands: [[[UInt8]]], keys: [[UInt8]],
        completion: @escaping @Sendable (Result<RESPValue, OriginError>) -> Void)

    /// Waits until the listener has received all invalidations that the server has sent so far. Call it after a script,
    /// because a script may change keys that it does not declare.
    /// - Parameters:
    ///   - key: selects the server in a cluster, where nil completes immediately. Ignored for a single server.
    ///   - completion: called once, at the latest after ``OriginLimits/heartbeatLimit``.
    func settle(_ key: [UInt8]?, completion: @escaping @Sendable () -> Void)

    /// Sends a request about the server itself, on a separate connection, so that it does not wait for other requests.
    /// Works even while the origin is suspended. Fails for clusters.
    /// - Parameters:
    ///   - words: the name of the command, followed by its arguments.
    ///   - completion: receives the reply; an error reply is ``OriginError/refused(_:)``.
    func sendSideRequest(_ words: [[UInt8]], completion: @escaping @Sendable (Result<RESPValue, OriginError>) -> Void)

    /// Suspends the origin: all calls except ``sendSideRequest(_:completion:)`` fail with
    /// ``OriginError/unsuitable(_:)``, and no stamp is current.
    /// - Parameter reason: the reason; nil resumes the origin. The listener is notified as for a lost connection.
    func hold(_ reason: String?)

    /// Whether an entry that was read with this stamp is still current at the origin. Does not consider invalidations,
    /// which the listener receives. Takes a few nanoseconds, without a lock.
    /// - Parameter now: the current time of the monotonic clock, in nanoseconds.
    func isCurrent(_ stamp: OriginStamp, now: Int64) -> Bool

    /// Returns the state and the counters of the origin.
    func status() -> OriginStatus

    /// Closes all connections. Pending calls fail with ``OriginError/closed``. May be called repeatedly.
    func close()
}

extension Origin {
    /// The default for an origin without transactions: fails.
    public func perform(
        transaction commands: [[[UInt8]]], keys: [[UInt8]],
        completion: @escaping @Sendable (Result<RESPValue, OriginError>) -> Void
    ) {
        completion(.failure(.refused("ERR this origin has no transactions")))
    }

    /// The default for an origin whose calls do not wait for each other: calls ``perform(_:key:completion:)``.
    public func sendSideRequest(
        _ words: [[UInt8]], completion: @escaping @Sendable (Result<RESPValue, OriginError>) -> Void
    ) {
        perform(words, key: nil, completion: completion)
    }

    /// The default for an origin that reads from no other origin, and so is never suspended: does nothing.
    public func hold(_ reason: String?) {}

    /// The default for an origin that reports changes before it acknowledges a command: completes immediately.
    public func settle(_ key: [UInt8]?, completion: @escaping @Sendable () -> Void) { completion() }

    /// The default for an origin without replicas: never calls `meanwhile`.
    public func read(
        _ keys: [[UInt8]], meanwhile: @escaping @Sendable (_ index: Int, OriginReading) -> Void,
        completion: @escaping @Sendable ([Result<OriginReading, OriginError>]) -> Void
    ) {
        read(keys, completion: completion)
    }
}

/// Receives the notifications of an origin. The methods are called on a thread of the origin, and must not block.
public protocol OriginListener: AnyObject, Sendable {
    /// These entries have changed.
    func originInvalidated(_ keys: [[UInt8]])
    /// Many entries may have changed, or their changes are no longer reported. ``Origin/isCurrent(_:now:)`` now returns
    /// false for their stamps. Called once, not once for each key.
    /// - Parameter reason: for the log, without secrets.
    func originLost(_ reason: String)
    /// The origin, or one of its servers, is still unavailable. Called after each failed attempt.
    /// - Parameter reason: for the log, without secrets.
    func originFailed(_ reason: String)
    /// The origin, or one of its servers, is available again.
    func originRecovered(_ server: String)
}

extension OriginListener {
    public func originFailed(_ reason: String) {}
}

/// Shows which server an entry was read from, and in which epoch. An epoch is a time in which the server's
/// invalidations were received without a gap. An entry is *verified* while the epoch of its stamp continues.
public struct OriginStamp: Hashable, Sendable {
    /// The number of the server within the origin.
    public let part: UInt32
    /// The epoch. It increases whenever changes may have been missed: after a lost connection, a heartbeat without a
    /// reply, a flush, or a change of the server's role. Never 0.
    public let epoch: UInt32
    /// The hash slot of the key in a cluster, because slots migrate one by one. 0 for a single server.
    public let slot: UInt16
    /// The epoch of the slot. It increases whenever the slot's owner may have changed. 0 for a single server.
    public let slotEpoch: UInt32

    public init(part: UInt32, epoch: UInt32, slot: UInt16 = 0, slotEpoch: UInt32 = 0) {
        (self.part, self.epoch, self.slot, self.slotEpoch) = (part, epoch, slot, slotEpoch)
    }
}

/// An entry as read from the origin.
public struct OriginReading: Sendable {
    /// The value; nil if the origin has none for the key.
    public var value: [UInt8]?
    /// The remaining time to live at the origin, in milliseconds from `sentAt`; nil if the entry does not expire.
    public var lifetimeMilliseconds: Int64?
    /// When the request was sent, in nanoseconds of the monotonic clock. The entry is not older than that.
    public var sentAt: Int64
    /// The stamp to check whether the entry is current; nil if the origin does not report its changes.
    public var stamp: OriginStamp?

    public init(value: [UInt8]?, lifetimeMilliseconds: Int64?, sentAt: Int64, stamp: OriginStamp?) {
        (self.value, self.lifetimeMilliseconds) = (value, lifetimeMilliseconds)
        (self.sentAt, self.stamp) = (sentAt, stamp)
    }
}

/// A write to an origin.
public struct OriginWrite: Sendable {
    public var key: [UInt8]
    public var value: [UInt8]
    /// The time to live at the origin.
    public var lifetime: Lifetime
    /// Whether the caller wants to cache the value. If false, the value is not read again to confirm the write.
    public var isKept: Bool

    public enum Lifetime: Hashable, Sendable {
        case unlimited
        case milliseconds(Int64)
        /// The entry expires at this time, in milliseconds since 1970.
        case until(Int64)
        /// Keeps the time to live of the existing entry.
        case kept
    }

    public init(key: [UInt8], value: [UInt8], lifetime: Lifetime, isKept: Bool = true) {
        (self.key, self.value, self.lifetime, self.isKept) = (key, value, lifetime, isKept)
    }
}

/// The origin's acknowledgement of a write.
public struct OriginAcknowledgement: Sendable {
    /// The remaining time to live at the origin, in milliseconds from `sentAt`; nil if the entry does not expire.
    public var lifetimeMilliseconds: Int64?
    /// When the write was sent, in nanoseconds of the monotonic clock.
    public var sentAt: Int64
    /// The stamp to check whether the written value is current; nil if the origin does not report changes of the value.
    /// In that case read the value again before using it.
    public var stamp: OriginStamp?
    /// Whether a read after the write has returned the written value. If false, value and time to live are unknown.
    public var isConfirmed: Bool

    public init(lifetimeMilliseconds: Int64?, sentAt: Int64, stamp: OriginStamp?, isConfirmed: Bool = true) {
        (self.lifetimeMilliseconds, self.sentAt) = (lifetimeMilliseconds, sentAt)
        (self.stamp, self.isConfirmed) = (stamp, isConfirmed)
    }
}

/// The limits and timeouts for the calls of an origin.
public struct OriginLimits: Hashable, Sendable {
    /// The maximum duration of a call, in milliseconds. After that, the call fails.
    public var call = 2_000
    /// The maximum time for connecting, in milliseconds.
    public var connect = 1_000
    /// The interval between the heartbeats of each server, in milliseconds.
    public var heartbeat = 250
    /// The maximum time to wait for the reply to a heartbeat, in milliseconds. After that, the server is no longer
    /// trusted to report changes.
    public var heartbeatLimit = 500
    /// The maximum length of a value, in bytes.
    public var valueBytes = 64 << 20
    /// The maximum number of pending requests at each server. Further requests fail immediately.
    public var callsWaiting = 100_000
    /// After ``failuresBeforeRest`` consecutive failures of a server, requests to it fail immediately for ``rest``
    /// milliseconds. Then one request is tried.
    public var failuresBeforeRest = 5
    public var rest = 1_000

    public init() {}

    /// The staleness limit, in milliseconds. After the origin has acknowledged a write of any client, reads of a
    /// verified entry may return the previous value for at most this time.
    public var staleness: Int { heartbeat + heartbeatLimit }
}

/// Why a request to an origin failed.
public enum OriginError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The connection could not be made. The text contains the address and the reason.
    case unreachable(String)
    /// No reply within `milliseconds`. The origin may have executed the request.
    case timedOut(milliseconds: Int)
    /// The request was not sent, because the server has failed recently or has too many pending requests. The text
    /// contains the server and the reason.
    case resting(String)
    /// The connection was lost after the request was sent. The origin may have executed the request.
    case interrupted(String)
    /// The origin has replied with this error.
    case refused(String)
    /// The reply is malformed or too long.
    case malformed(String)
    /// The value is larger than ``OriginLimits/valueBytes`` (or the values of one call are too large together).
    case tooLarge(bytes: Int, most: Int)
    /// The origin does not match the configuration: it is not a cluster, requires a password, or has only RESP2.
    case unsuitable(String)
    /// No server owns the key's slot, or the server that owns it cannot execute requests now.
    case unavailable(String)
    /// This program has closed the origin.
    case closed

    public var description: String {
        switch self {
        case .unreachable(let reason): "the origin cannot be reached: \(reason)"
        case .timedOut(let milliseconds): "the origin did not answer within \(milliseconds) ms"
        case .resting(let reason): "the origin gets no requests for a while: \(reason)"
        case .interrupted(let reason): "the connection to the origin was lost before it replied: \(reason)"
        case .refused(let reply): "the origin replied: \(reply)"
        case .malformed(let reason): "malformed reply from the origin: \(reason)"
        case .tooLarge(let bytes, let most):
            "the value has \(bytes) bytes; origins are limited to \(most)"
        case .unsuitable(let reason): "the origin cannot be used: \(reason)"
        case .unavailable(let reason): "the origin is unavailable for this key: \(reason)"
        case .closed: "the origin is closed"
        }
    }

    /// Whether the origin may have executed the request.
    public var isUncertain: Bool {
        switch self {
        case .timedOut, .interrupted, .malformed: true
        default: false
        }
    }

    /// Whether the request was rejected, so that a retry would fail too.
    public var isRefusal: Bool {
        switch self {
        case .refused, .tooLarge, .unsuitable: true
        default: false
        }
    }
}

/// The state of an origin and its counters. Counters never decrease.
public struct OriginStatus: Sendable {
    /// A server of the origin.
    public struct Server: Sendable {
        /// The address of the server.
        public var name = ""
        /// Whether the server is connected, and trusted to report changes.
        public var isUp = false
        /// How many times the server became trusted to report changes.
        public var recoveries = 0
        /// The epoch of the server: see ``OriginStamp/epoch``.
        public var epoch: UInt32 = 0
        /// When the server became unavailable, in nanoseconds of the monotonic clock; nil if it is available.
        public var downSince: Int64?
        /// The last error, if the server is not up.
        public var lastError: String?
        /// The round-trip time of the last heartbeat, in microseconds.
        public var heartbeatMicroseconds: Int64 = 0

        public init() {}
    }

    public var servers: [Server] = []
    /// The number of keys that were read, and the number of absent keys among them.
    public var reads = 0
    public var absentReads = 0
    /// The number of writes, removals and other commands.
    public var commands = 0
    /// The number of failed calls, and the number of timeouts among them.
    public var failures = 0
    public var timeouts = 0
    /// The number of keys for which the origin has sent an invalidation.
    public var invalidations = 0
    /// The number of epochs that have ended: see ``OriginStamp``.
    public var epochsEnded = 0
    /// The number of MOVED and ASK redirections.
    public var redirections = 0

    public init() {}
}
