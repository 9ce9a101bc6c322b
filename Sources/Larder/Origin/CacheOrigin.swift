import LarderEngine
import Synchronization

/// What stands behind a cache and has the truth: a server, a database, a web service, another larder. An ``OriginCache``
/// asks it.
///
/// Only ``read(_:)`` must be written. An origin that can say what changes also has ``tellsChanges`` and
/// ``tellChanges(to:)``; without them an entry is good for as long as its policy and the origin's lifetime say.
///
/// Keys and values are bytes here, so that anything can be an origin: a value is what a cache would store, a model as its
/// codec writes it. ``ClosureOrigin`` makes one of closures, in models too.
///
/// Calls come from any thread, several at a time.
public protocol CacheOrigin: Sendable {
    /// The origin for people: in errors, without secrets.
    var name: String { get }

    /// Reads entries.
    /// - Parameter keys: distinct, at least one.
    /// - Returns: an answer for each key, in the order of `keys`.
    /// - Throws: if any of them cannot be answered. Who reads gets a stale value then, if there is one, or this error.
    func read(_ keys: [[UInt8]]) async throws -> [OriginAnswer]

    /// Stores a value. Returns when the origin has it.
    /// - Throws: whatever happened. The cache then forgets the key if the origin may have stored the value:
    ///   ``CacheOrigin/mayHaveChanged(_:after:)``.
    func write(_ value: OriginWriting, forKey key: [UInt8]) async throws -> OriginAcknowledgement

    /// Removes entries, whether they are there or not. Returns when they are gone. Errors as for ``write(_:forKey:)``.
    func remove(_ keys: [[UInt8]]) async throws

    /// Whether a write or a removal that threw an error may have changed some of its keys. If not, the cache keeps what it
    /// has for them.
    func mayHaveChanged(_ keys: [[UInt8]], after error: any Error) -> Bool

    /// Whether the origin says what changes. Then only what it has answered since ``OriginChanges/begin()``, and not said
    /// to have changed, is fresh. Constant.
    var tellsChanges: Bool { get }

    /// Says what changes, for as long as it can. The cache calls it once it is made, if ``tellsChanges`` is true, and again
    /// some time after it has returned or thrown; meanwhile nothing is believed. The task is cancelled when the cache is
    /// closed.
    func tellChanges(to changes: OriginChanges) async throws

    /// What the origin answered in one epoch is known to be current, unless it said otherwise, until the epoch changes;
    /// nil if nothing is known to be current now. For origins that find out by a clock that nobody told them anything, like
    /// those with a heartbeat. Asked for at every read: must return at once, and not call the cache.
    var epoch: UInt64? { get }

    /// Whether it has limits of its own for its calls, and leaves alone for a while what has failed. Then the cache adds
    /// none; else those of ``OriginCacheLimits`` hold. Constant.
    var keepsLimits: Bool { get }
}

extension CacheOrigin {
    /// The type's name.
    public var name: String { "\(Self.self)" }

    /// Throws ``OriginFailure/readOnly(_:)``.
    public func write(_ value: OriginWriting, forKey key: [UInt8]) async throws -> OriginAcknowledgement {
        throw OriginFailure.readOnly(name)
    }

    /// Throws ``OriginFailure/readOnly(_:)``.
    public func remove(_ keys: [[UInt8]]) async throws { throw OriginFailure.readOnly(name) }

    /// False for the errors that say that nothing was done, ``OriginFailure/readOnly(_:)``, ``OriginFailure/refused(_:)`` and
    /// ``OriginFailure/resting(_:reason:)``; true for all others.
    public func mayHaveChanged(_ keys: [[UInt8]], after error: any Error) -> Bool {
        switch error as? OriginFailure {
        case .readOnly, .refused, .resting: false
        case .wrongAnswers, .timedOut, nil: true
        }
    }

    /// False.
    public var tellsChanges: Bool { false }

    /// Returns at once.
    public func tellChanges(to changes: OriginChanges) async throws {}

    /// Always the same.
    public var epoch: UInt64? { 0 }

    /// False.
    public var keepsLimits: Bool { false }
}

/// What an origin has for a key.
public struct OriginAnswer: Sendable {
    /// The value; nil if the origin has none.
    public var bytes: [UInt8]?
    /// How the value is encoded. ``Codec/raw``, the default, does for JSON, property lists, text and bytes.
    public var codec: Codec
    /// How long the entry still lives at the origin, counted from the moment in which it was asked; nil if it does not end.
    public var lifetime: Duration?
    /// Whether the origin will say when the entry changes. Of no meaning for origins that say nothing; what others do not
    /// watch is given to who asked, and not kept.
    public var isWatched = true

    /// A value.
    public init(_ bytes: [UInt8], codec: Codec = .raw, lifetime: Duration? = nil) {
        self.bytes = bytes
        self.codec = codec
        self.lifetime = lifetime
    }

    private init() {
        bytes = nil
        codec = .raw
    }

    /// The origin has no value.
    public static let absent = OriginAnswer()
}

/// A value that is stored at an origin.
public struct OriginWriting: Sendable {
    /// The value.
    public let bytes: [UInt8]
    /// How it is encoded.
    public let codec: Codec
    /// How long it lives there; nil if it does not end.
    public let lifetime: Duration?

    /// A value.
    public init(_ bytes: [UInt8], codec: Codec = .raw, lifetime: Duration? = nil) {
        self.bytes = bytes
        self.codec = codec
        self.lifetime = lifetime
    }
}

/// What an origin says of a value that it has stored.
public struct OriginAcknowledgement: Sendable {
    /// How long the entry lives at the origin, counted from the moment in which it was asked to store it; nil if it does not
    /// end.
    public var lifetime: Duration?
    /// Whether the origin will say when the entry changes, as for ``OriginAnswer/isWatched``.
    public var isWatched: Bool
    /// When the origin was last known to have the value, if it says so after the write: what it said to have changed
    /// before, the write itself included, does not concern the value. Nil: a change that was told during the write may be
    /// newer than the value, which is then not kept.
    public var confirmedAt: OriginMoment?

    /// The value is stored.
    public init(lifetime: Duration? = nil, isWatched: Bool = true) {
        self.lifetime = lifetime
        self.isWatched = isWatched
    }
}

/// The errors of origins that Larder has, and one for origins of your own.
public enum OriginFailure: Error, Hashable, Sendable, CustomStringConvertible {
    /// The origin takes no writes.
    case readOnly(String)
    /// The origin gave another number of answers than there were keys.
    case wrongAnswers(String, expected: Int, got: Int)
    /// The origin has failed some times in a row, and is not asked for a while: its name, and what happened last. Nothing
    /// was done. See ``OriginCacheLimits``.
    case resting(String, reason: String)
    /// The origin did not answer within ``OriginCacheLimits/call``. A write or removal may have been done, or may be done
    /// later: nothing is kept for its key until the origin's function has ended.
    case timedOut(String, milliseconds: Int)
    /// To be thrown by your own origin: it has answered, and says no to this call alone, for a reason; it has changed
    /// nothing. It does not count as a failure for which the origin is left alone.
    case refused(String)

    /// What was wrong, for people.
    public var description: String {
        switch self {
        case .readOnly(let name): "the origin '\(name)' takes no writes: it has no function for them"
        case .wrongAnswers(let name, let expected, let got):
            "the origin '\(name)' gave \(got) answers for \(expected) keys: it must give one for each, in their order"
        case .resting(let name, let reason):
            "the origin '\(name)' is not asked for a moment because it failed: \(reason)"
        case .timedOut(let name, let milliseconds): "the origin '\(name)' did not answer within \(milliseconds) ms"
        case .refused(let reason): "the origin refused: \(reason)"
        }
    }
}
