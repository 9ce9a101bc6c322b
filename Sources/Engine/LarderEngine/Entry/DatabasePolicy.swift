/// What a database's owner decides about the life of its entries.
package struct DatabasePolicy: Hashable, Sendable {
    /// The interval of governed entries.
    package var policy: UpdatePolicy
    /// For how long entries without a grace of their own are kept behind their deadline, in milliseconds; from 0 to
    /// ``UpdatePolicy/longestMilliseconds``.
    package var grace: Int64
    /// By how much the interval of an entry may be shortened when it is stored, in percent: from 0 to 100. The part is
    /// random, so that entries that are stored together do not end together.
    package var jitter: Int

    package init(_ policy: UpdatePolicy, grace: Int64 = 0, jitter: Int = 0) {
        self.policy = policy
        self.grace = grace
        self.jitter = jitter
    }

    package static let jitterMax = Jitter.percentMax

    /// The rule of an entry that is stored at `now`. With a jitter every entry gets a deadline of its own.
    /// - Parameters:
    ///   - interval: the entry's own; nil for the database's.
    ///   - jitter: the entry's own; nil for the database's.
    package func rule(_ interval: UpdatePolicy?, jitter: Int?, now: Int64) -> DeadlineRule {
        let jitter = jitter ?? self.jitter
        guard jitter > 0, let length = (interval ?? policy).intervalMilliseconds else {
            return interval.map { .policy($0, now: now) } ?? .governed
        }
        return .own(now + Self.shortened(length, by: jitter))
    }

    /// A random part of an interval: at least 1 ms, and at least what `jitter` percent leave of it.
    package static func shortened(_ milliseconds: Int64, by jitter: Int) -> Int64 {
        Jitter.shortened(milliseconds, by: jitter)
    }
}
