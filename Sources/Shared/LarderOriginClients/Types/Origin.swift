import LarderRESP

/// The server behind a cache. It has the authoritative data, and may be slow or fail.
///
/// All calls return at once, and may come from any thread. Each completion is called exactly once, on a thread of the
/// origin, at the latest after ``OriginLimits/call``; it must not block. Completions and notifications of the listener
/// are called in the order in which the server sent them: an invalidation sent before a reply is delivered before it.
public protocol Origin: AnyObject, Sendable {
    /// The name of the origin in messages: its address without secrets.
    var name: String { get }

    /// Reads entries, and subscribes to their changes as far as the origin supports it.
    /// - Parameter completion: receives a result for each key, in the order of `keys`. An absent key is a successful
    ///   result.
    func read(_ keys: [[UInt8]], completion: @escaping @Sendable ([Result<OriginReading, OriginError>]) -> Void)

    /// Like ``read(_:completion:)``, but also reports the replies of replicas that arrive before the origin's. These
    /// may be arbitrarily old; the completion waits for the origin itself.
    /// - Parameter meanwhile: receives such a reply and the index of its key in `keys`, at most once for each key,
    ///   before the completion.
    func read(
        _ keys: [[UInt8]], meanwhile: @escaping @Sendable (_ index: Int, OriginReading) -> Void,
        completion: @escaping @Sendable ([Result<OriginReading, OriginError>]) -> Void)

    /// Stores a value.
    /// - Parameter completion: called when the origin has acknowledged the write.
    func write(
        _ write: OriginWrite, completion: @escaping @Sendable (Result<OriginAcknowledgement, OriginError>) -> Void)

    /// Removes entries.
    /// - Parameter completion: receives the number of entries removed.
    func remove(_ keys: [[UInt8]], completion: @escaping @Sendable (Result<Int, OriginError>) -> Void)

    /// Runs a command of the origin unchanged, such as INCR. The reply is not cached.
    /// - Parameters:
    ///   - words: the name of the command, then its arguments.
    ///   - key: a key of the command, which selects the server; nil if the command has none.
    ///   - completion: receives the reply; an error reply is ``OriginError/refused(_:)``.
    func perform(
        _ words: [[UInt8]], key: [UInt8]?, completion: @escaping @Sendable (Result<RESPValue, OriginError>) -> Void)

    /// Runs commands as a transaction of the origin: all of them or none, with nothing between them.
    /// - Parameters:
    ///   - commands: as for ``perform(_:key:completion:)``.
    ///   - keys: all keys of the commands; in a cluster they must be in one slot.
    ///   - completion: receives an array of the replies. If it gets an error instead, nothing was executed, unless the
    ///     error is uncertain.
    func perform(
        transaction commands: [[[UInt8]]], keys: [[UInt8]],
        completion: @escaping @Sendable (Result<RESPValue, OriginError>) -> Void)

    /// Waits until the listener has received all invalidations that the server has sent so far. Call it after a script,
    /// which may change keys that it does not declare.
    /// - Parameters:
    ///   - key: selects the server; nil for the only one. In a cluster, nil returns at once.
    ///   - completion: called once, at the latest after the heartbeat's limit.
    func settle(_ key: [UInt8]?, completion: @escaping @Sendable () -> Void)

    /// Sends a request about the server itself, ahead of everything under way, and even while the origin is suspended.
    /// Clusters refuse it.
    /// - Parameters:
    ///   - words: the name of the command, then its arguments.
    ///   - completion: receives the reply; an error reply is ``OriginError/refused(_:)``.
    func inquire(_ words: [[UInt8]], completion: @escaping @Sendable (Result<RESPValue, OriginError>) -> Void)

    /// Suspends the origin: all calls except ``inquire(_:completion:)`` fail with ``OriginError/unsuitable(_:)``, and
    /// no stamp is current.
    /// - Parameter reason: the reason; nil resumes the origin. The listener is notified as if the connection was lost
    ///   and restored.
    func hold(_ reason: String?)

    /// Whether an entry read with the stamp is still current at the origin, provided that the listener has received no
    /// invalidation of it. Takes some nanoseconds and no lock.
    /// - Parameter now: the current time of the monotonic clock, in nanoseconds.
    func isCurrent(_ stamp: OriginStamp, now: Int64) -> Bool

    /// The state and the counters of the origin.
    func status() -> OriginStatus

    /// Closes all connections; calls under way fail with ``OriginError/closed``. Idempotent.
    func close()
}

extension Origin {
    /// Default for an origin without transactions: fails.
    public func perform(
        transaction commands: [[[UInt8]]], keys: [[UInt8]],
        completion: @escaping @Sendable (Result<RESPValue, OriginError>) -> Void
    ) {
        completion(.failure(.refused("ERR this origin has no transactions")))
    }

    /// Default for an origin whose calls do not wait for each other: calls ``perform(_:key:completion:)``.
    public func inquire(
        _ words: [[UInt8]], completion: @escaping @Sendable (Result<RESPValue, OriginError>) -> Void
    ) {
        perform(words, key: nil, completion: completion)
    }

    /// Default for an origin without upstream origins: does nothing.
    public func hold(_ reason: String?) {}

    /// Default for an origin that reports changes before it acknowledges: completes at once.
    public func settle(_ key: [UInt8]?, completion: @escaping @Sendable () -> Void) { completion() }

    /// Default for an origin without replicas: never calls `meanwhile`.
    public func read(
        _ keys: [[UInt8]], meanwhile: @escaping @Sendable (_ index: Int, OriginReading) -> Void,
        completion: @escaping @Sendable ([Result<OriginReading, OriginError>]) -> Void
    ) {
        read(keys, completion: completion)
    }
}

/// Receives the notifications of an origin. Called on a thread of the origin; must not block.
public protocol OriginListener: AnyObject, Sendable {
    /// These entries have changed.
    func originInvalidated(_ keys: [[UInt8]])
    /// Entries of many keys may have changed, or their changes are no longer reported. ``Origin/isCurrent(_:now:)``
    /// returns false for the stamps concerned. Called once for many keys, at a constant cost.
    /// - Parameter reason: for the log, without secrets.
    func originLost(_ reason: String)
    /// The origin, or a part of it, was unavailable, and still is. Called for each attempt.
    /// - Parameter reason: for the log, without secrets.
    func originFailed(_ reason: String)
    /// The origin, or a part of it, is available again.
    func originRecovered(_ server: String)
}

extension OriginListener {
    public func originFailed(_ reason: String) {}
}

/// A part of an origin and its epoch. A reading is *verified* while the epoch of its stamp continues.
public struct OriginStamp: Hashable, Sendable {
    /// The index of the server in the origin's table.
    public let part: UInt32
    /// Increases whenever the part can no longer report what changed: after a lost connection, a missed heartbeat, a
    /// flush, or a new owner of its keys. Never 0.
    public let epoch: UInt32
    /// The hash slot of the key in a cluster, because slots migrate one by one. 0 elsewhere.
    public let slot: UInt16
    /// Increases whenever the slot may have another owner. 0 elsewhere.
    public let slotEpoch: UInt32

    public init(part: UInt32, epoch: UInt32, slot: UInt16 = 0, slotEpoch: UInt32 = 0) {
        self.part = part
        self.epoch = epoch
        self.slot = slot
        self.slotEpoch = slotEpoch
    }
}

/// The origin's entry for a key.
public struct OriginReading: Sendable {
    /// Nil if the origin has no value.
    public var value: [UInt8]?
    /// The remaining time to live at the origin, in milliseconds from `sentAt`; nil: the entry does not expire.
    public var lifetimeMilliseconds: Int64?
    /// When the request was sent, in nanoseconds of the monotonic clock. The entry is not older than that.
    public var sentAt: Int64
    /// Nil if the origin does not report when the entry changes.
    public var stamp: OriginStamp?

    public init(value: [UInt8]?, lifetimeMilliseconds: Int64?, sentAt: Int64, stamp: OriginStamp?) {
        self.value = value
        self.lifetimeMilliseconds = lifetimeMilliseconds
        self.sentAt = sentAt
        self.stamp = stamp
    }
}

/// A write to an origin.
public struct OriginWrite: Sendable {
    public var key: [UInt8]
    public var value: [UInt8]
    /// The time to live at the origin.
    public var lifetime: Lifetime
    /// Whether the caller wants to cache the value. If not, the write is not read back, and is not confirmed.
    public var isKept: Bool

    public enum Lifetime: Hashable, Sendable {
        case unlimited
        case milliseconds(Int64)
        /// An instant, in milliseconds since 1970.
        case until(Int64)
        /// Keeps the time to live of the existing entry.
        case kept
    }

    public init(key: [UInt8], value: [UInt8], lifetime: Lifetime, isKept: Bool = true) {
        self.key = key
        self.value = value
        self.lifetime = lifetime
        self.isKept = isKept
    }
}

/// The origin's acknowledgement of a write.
public struct OriginAcknowledgement: Sendable {
    /// The remaining time to live at the origin, in milliseconds from `sentAt`; nil: the entry does not expire.
    public var lifetimeMilliseconds: Int64?
    /// When the write was sent, in nanoseconds of the monotonic clock.
    public var sentAt: Int64
    /// Nil if later changes of the entry are not reported: read it before relying on it.
    public var stamp: OriginStamp?
    /// Whether a read after the write returned this value and time to live. If not, neither is known.
    public var isConfirmed: Bool

    public init(lifetimeMilliseconds: Int64?, sentAt: Int64, stamp: OriginStamp?, isConfirmed: Bool = true) {
        self.lifetimeMilliseconds = lifetimeMilliseconds
        self.sentAt = sentAt
        self.stamp = stamp
        self.isConfirmed = isConfirmed
    }
}
