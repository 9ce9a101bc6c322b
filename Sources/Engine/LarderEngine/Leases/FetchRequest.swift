/// The request of a caller that fetches a value from its origin if there is no fresh one.
package struct FetchRequest: Sendable {
    package let key: Key
    /// The holder of the lease that the caller may be granted.
    package let holder: LeaseHolder
    /// The maximum age of the value at the time of the request, in milliseconds; nil for any age. With zero, only a
    /// value stored after the request is accepted.
    package var maxAge: Int64?
    /// The duration of the lease in milliseconds, even if its holder ends earlier. With nil, the lease has the default
    /// duration, and ends early if its holder ends.
    package var leaseMilliseconds: Int64?
    /// The time of the caller's first request, in milliseconds since 1970.
    package var askedAt: Int64
    /// The caller's waiter; nil if it does not wait.
    package var waiter: LeaseWaiter?
    /// Whether the caller waits if there is no value to serve.
    package var mayWait = false
    /// Whether the caller waits even if there is a stale value that may be served.
    package var waitsForFresh = false
    /// Whether the caller only looks up the stored value, fresh or stale, and refreshes nothing.
    private(set) var isLookup = false

    package init(key: Key, holder: LeaseHolder, askedAt: Int64) {
        self.key = key
        self.holder = holder
        self.askedAt = askedAt
    }

    /// Whether a value is young enough for ``maxAge``, or was written while the caller waited.
    package func isYoung(_ header: RecordHeader) -> Bool {
        waiter?.sawWrite ?? false || Self.isYoung(header.storedAt, maxAge, askedAt)
    }

    /// Whether a value is young enough. `maxAge` 0 excludes values of the same millisecond, which may be older than the
    /// request.
    static func isYoung(_ storedAt: Int64, _ maxAge: Int64?, _ askedAt: Int64) -> Bool {
        guard let maxAge else { return true }
        return maxAge == 0 ? storedAt > askedAt : storedAt >= askedAt.subtractingClamped(maxAge)
    }

    /// Creates a lookup of the stored value, fresh or stale. The state of the answer is ``FetchAnswer/State/fresh`` or
    /// ``FetchAnswer/State/stale``. If there is no value, the answer has no header.
    package init(lookingFor key: Key) {
        self.init(key: key, holder: Self.nobody, askedAt: 0)
        isLookup = true
    }

    private static let nobody = LeaseHolder()
}

/// The answer to a ``FetchRequest``, without the value.
package struct FetchAnswer: Sendable {
    package enum State: Hashable, Sendable {
        /// The value is fresh, and young enough for the caller.
        case fresh
        /// The value is stale, or too old for the caller, but may be served: another caller is refreshing it, or the
        /// origin backs off after a failure.
        case stale
        /// The caller must refresh the value, with this token. A stored value, if there is one, may be served until
        /// then.
        case lead(token: UInt64)
        /// There is no acceptable value, and another caller is refreshing it, at most until this instant of the
        /// monotonic clock.
        case wait(until: Int64)
        /// Like `wait`, and the caller was added to the queue. It must ask again when its waiter is woken, or at this
        /// instant at the latest.
        case queued(until: Int64)
        /// The origin has no value, and is not asked again for `milliseconds`.
        case absent(milliseconds: Int64)
        /// The origin failed and backs off for `milliseconds`, and there is no acceptable value.
        case failed(milliseconds: Int64)
    }

    package let state: State
    /// The header of the entry; nil if the entry may not even be served stale.
    package let header: RecordHeader?
    package let rules: FreshnessRules
}

extension FetchAnswer.State {
    var isQueued: Bool { if case .queued = self { true } else { false } }
}
