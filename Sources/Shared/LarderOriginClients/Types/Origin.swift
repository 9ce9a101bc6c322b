import LarderRESP

/// The server behind a cache: it has the truth, and answers slowly or not at all.
///
/// All calls return at once, and may come from any thread. Each completion is called exactly once, on a thread of the
/// origin, at the latest when ``OriginLimits/call`` is over; it must not block. Completions and the calls of the listener
/// come in the order in which the origin's server said things: what was said before an answer is heard before it.
public protocol Origin: AnyObject, Sendable {
    /// The origin for people: its address without secrets.
    var name: String { get }

    /// Reads entries, and has the origin say when they change, as far as it can.
    /// - Parameter completion: gets an answer for each key, in the order of `keys`. An absent key is an answer too.
    func read(_ keys: [[UInt8]], completion: @escaping @Sendable ([Result<OriginReading, OriginError>]) -> Void)

    /// As ``read(_:completion:)``, and hears what copies of the origin say while the origin has not answered, if they are
    /// asked. What they say may be older than any bound; the completion waits for the origin itself.
    /// - Parameter meanwhile: gets such an answer and the place of its key in `keys`, at most once for each key, before
    ///   the completion.
    func read(
        _ keys: [[UInt8]], meanwhile: @escaping @Sendable (_ index: Int, OriginReading) -> Void,
        completion: @escaping @Sendable ([Result<OriginReading, OriginError>]) -> Void)

    /// Stores a value.
    /// - Parameter completion: is called when the origin has acknowledged.
    func write(
        _ write: OriginWrite, completion: @escaping @Sendable (Result<OriginAcknowledgement, OriginError>) -> Void)

    /// Removes entries.
    /// - Parameter completion: gets how many there were.
    func remove(_ keys: [[UInt8]], completion: @escaping @Sendable (Result<Int, OriginError>) -> Void)

    /// Runs a command of the origin as it is, such as INCR: what it answers is for the caller alone.
    /// - Parameters:
    ///   - words: the name of the command, then its arguments.
    ///   - key: the key that it concerns, by which it finds its server; nil if it concerns none.
    ///   - completion: gets the reply; an error reply is ``OriginError/refused(_:)``.
    func perform(
        _ words: [[UInt8]], key: [UInt8]?, completion: @escaping @Sendable (Result<RESPValue, OriginError>) -> Void)

    /// Runs commands as a transaction of the origin: all of them or none, with nothing between them.
    /// - Parameters:
    ///   - commands: as for ``perform(_:key:completion:)``.
    ///   - keys: all that they concern; of a cluster's keys all in one slot.
    ///   - completion: gets an array of their replies. An error that is none of these means that nothing was done, unless
    ///     it is uncertain.
    func perform(
        transaction commands: [[[UInt8]]], keys: [[UInt8]],
        completion: @escaping @Sendable (Result<RESPValue, OriginError>) -> Void)

    /// Waits until the listener has heard what the origin's server has said of changes so far: what a script has changed
    /// under keys that it did not name.
    /// - Parameters:
    ///   - key: by which it finds its server; nil for the only one. In a cluster nil waits for nothing.
    ///   - completion: is called once, at the latest when the heartbeat's limit is over.
    func settle(_ key: [UInt8]?, completion: @escaping @Sendable () -> Void)

    /// Asks the server about itself, past everything that is under way and also while it is held. A cluster refuses that.
    /// - Parameters:
    ///   - words: the name of the command, then its arguments.
    ///   - completion: gets the reply; an error reply is ``OriginError/refused(_:)``.
    func inquire(_ words: [[UInt8]], completion: @escaping @Sendable (Result<RESPValue, OriginError>) -> Void)

    /// Asks and believes the origin no more, although it answers: all calls fail with ``OriginError/unsuitable(_:)``, except
    /// ``inquire(_:completion:)``.
    /// - Parameter reason: why; nil: no longer. The listener hears of both as of a loss and its end.
    func hold(_ reason: String?)

    /// Whether what was read with the stamp is still known to be what the origin has, unless the listener was told
    /// otherwise. Costs some nanoseconds; takes no lock.
    /// - Parameter now: the present instant of the monotonic clock, in nanoseconds.
    func isCurrent(_ stamp: OriginStamp, now: Int64) -> Bool

    /// What has happened so far, and how the origin is.
    func status() -> OriginStatus

    /// Ends all connections; what is under way fails with ``OriginError/closed``. Idempotent.
    func close()
}

extension Origin {
    /// Of an origin without transactions.
    public func perform(
        transaction commands: [[[UInt8]]], keys: [[UInt8]],
        completion: @escaping @Sendable (Result<RESPValue, OriginError>) -> Void
    ) {
        completion(.failure(.refused("ERR this origin has no transactions")))
    }

    /// Of an origin whose calls do not wait for each other.
    public func inquire(
        _ words: [[UInt8]], completion: @escaping @Sendable (Result<RESPValue, OriginError>) -> Void
    ) {
        perform(words, key: nil, completion: completion)
    }

    /// Of an origin that asks nobody itself.
    public func hold(_ reason: String?) {}

    /// Of an origin that says what was changed before it acknowledges.
    public func settle(_ key: [UInt8]?, completion: @escaping @Sendable () -> Void) { completion() }

    /// Of an origin without copies: the same without them.
    public func read(
        _ keys: [[UInt8]], meanwhile: @escaping @Sendable (_ index: Int, OriginReading) -> Void,
        completion: @escaping @Sendable ([Result<OriginReading, OriginError>]) -> Void
    ) {
        read(keys, completion: completion)
    }
}

/// Hears what an origin says unasked. Called on a thread of the origin; must not block.
public protocol OriginListener: AnyObject, Sendable {
    /// These entries are no longer what they were.
    func originInvalidated(_ keys: [[UInt8]])
    /// Entries of many keys may have changed, or what is known of them is no longer kept current: stamps of the past
    /// are no longer good, as far as ``Origin/isCurrent(_:now:)`` says so. Said at once for many keys; costs nothing for each.
    /// - Parameter reason: for the log, without secrets.
    func originLost(_ reason: String)
    /// The origin, or a part of it, could not be asked before, and still cannot. Said for each attempt.
    /// - Parameter reason: for the log, without secrets.
    func originFailed(_ reason: String)
    /// The origin, or a part of it, can be asked after it could not.
    func originRecovered(_ server: String)
}

extension OriginListener {
    public func originFailed(_ reason: String) {}
}

/// A part of an origin and its epoch. What was read in an epoch is *verified* as long as the epoch goes on.
public struct OriginStamp: Hashable, Sendable {
    /// Which part: the number of a server's place in the origin's own table.
    public let part: UInt32
    /// Goes up whenever the part can no longer say what changed: a lost connection, a missed heartbeat, a flush, another
    /// owner of its keys. Never 0.
    public let epoch: UInt32
    /// Which of its keys, where some can go to another part without the others: the slot of a cluster. 0 elsewhere.
    public let slot: UInt16
    /// Goes up whenever the slot may have another owner. 0 elsewhere.
    public let slotEpoch: UInt32

    public init(part: UInt32, epoch: UInt32, slot: UInt16 = 0, slotEpoch: UInt32 = 0) {
        self.part = part
        self.epoch = epoch
        self.slot = slot
        self.slotEpoch = slotEpoch
    }
}

/// What an origin has for a key.
public struct OriginReading: Sendable {
    /// Nil: the origin has nothing.
    public var value: [UInt8]?
    /// How long the entry still lives there, in milliseconds, counted from `sentAt`; nil: it does not end.
    public var lifetimeMilliseconds: Int64?
    /// When the question was sent, in nanoseconds of the monotonic clock: the entry is not older than that.
    public var sentAt: Int64
    /// Nil if the origin does not say when the entry changes.
    public var stamp: OriginStamp?

    public init(value: [UInt8]?, lifetimeMilliseconds: Int64?, sentAt: Int64, stamp: OriginStamp?) {
        self.value = value
        self.lifetimeMilliseconds = lifetimeMilliseconds
        self.sentAt = sentAt
        self.stamp = stamp
    }
}

/// What is stored at an origin.
public struct OriginWrite: Sendable {
    public var key: [UInt8]
    public var value: [UInt8]
    /// How long the entry lives there.
    public var lifetime: Lifetime
    /// Whether the caller wants to keep it as known. If not, nothing is read behind the write, and it is not confirmed.
    public var isKept: Bool

    public enum Lifetime: Hashable, Sendable {
        case unlimited
        case milliseconds(Int64)
        /// An instant, in milliseconds since 1970.
        case until(Int64)
        /// As the entry's that is there.
        case kept
    }

    public init(key: [UInt8], value: [UInt8], lifetime: Lifetime, isKept: Bool = true) {
        self.key = key
        self.value = value
        self.lifetime = lifetime
        self.isKept = isKept
    }
}

/// What an origin says of a write.
public struct OriginAcknowledgement: Sendable {
    /// How long the entry lives there, in milliseconds, counted from `sentAt`; nil: it does not end.
    public var lifetimeMilliseconds: Int64?
    /// When the write was sent, in nanoseconds of the monotonic clock.
    public var sentAt: Int64
    /// Nil if later changes of the entry are not told: it must be read before it is known.
    public var stamp: OriginStamp?
    /// Whether the origin said behind the write that it has that value, with that lifetime. If not, neither is known.
    public var isConfirmed: Bool

    public init(lifetimeMilliseconds: Int64?, sentAt: Int64, stamp: OriginStamp?, isConfirmed: Bool = true) {
        self.lifetimeMilliseconds = lifetimeMilliseconds
        self.sentAt = sentAt
        self.stamp = stamp
        self.isConfirmed = isConfirmed
    }
}
