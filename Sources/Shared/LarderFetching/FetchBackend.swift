import LarderVocabulary

/// A cache key as seen by a fetching caller. Equal for two handles of one database.
package struct FetchName: Hashable, Sendable {
    let owner: ObjectIdentifier
    package let key: [UInt8]
    package let database: String

    /// - Parameter owner: the database's own object.
    package init(_ owner: AnyObject, _ database: String, _ key: [UInt8]) {
        self.owner = ObjectIdentifier(owner)
        self.database = database
        self.key = key
    }

    package var printable: String { printableKey(key) }

    package static func == (left: FetchName, right: FetchName) -> Bool {
        left.owner == right.owner && left.key == right.key
    }

    package func hash(into hasher: inout Hasher) {
        hasher.combine(owner)
        hasher.combine(key)
    }
}

/// A cached value that comes with the lease to fetch a newer one.
package struct FoundValue<Value: Sendable>: Sendable {
    package let value: Value
    package let isFresh: Bool
    /// Whether it satisfies the caller's maximum age.
    package let isYoung: Bool

    package init(_ value: Value, isFresh: Bool, isYoung: Bool) {
        self.value = value
        self.isFresh = isFresh
        self.isYoung = isYoung
    }
}

/// The cache's reply to a caller that is ready to fetch.
package enum FetchReply<Value: Sendable>: Sendable {
    /// The value is fresh.
    case fresh(Value)
    /// The value may be served: another caller fetches, or the origin backs off.
    case stale(Value)
    /// The caller has the lease and must fetch.
    case lead(token: UInt64, FoundValue<Value>?)
    /// Another caller fetches, and there is nothing to serve.
    case wait
    /// The origin has no value: a cached negative result.
    case absent
    /// The origin backs off for `milliseconds`, and there is nothing to serve.
    case failed(milliseconds: Int64)
}

/// How a caller releases its lease without storing a value.
package enum FetchRelease: Hashable, Sendable {
    case open
    /// The origin has no value; cached as absent for `milliseconds`.
    case absent(milliseconds: Int64)
    /// The origin failed; it backs off for `milliseconds`.
    case failed(milliseconds: Int64)
}

/// When a lookup waits for another caller's fetch of the key.
package enum FetchWait: Hashable, Sendable {
    /// Returns `wait` instead of waiting.
    case never
    /// Waits if there is nothing to serve.
    case ifNothingServes
    /// Waits even if a stale value is available. Daemons treat it as ``ifNothingServes``.
    case ifNothingIsFresh
}

/// One key in a cache, as accessed by its fetching callers: through the engine in this process, or through the daemon.
package protocol FetchBackend<Value>: Sendable {
    associatedtype Value: Sendable

    var name: FetchName { get }
    /// The current time, in milliseconds, of the clock for leases.
    func now() -> Int64
    /// - Parameters:
    ///   - maxAge: in milliseconds; nil for any age.
    ///   - lease: the duration of the lease in milliseconds; nil for the default.
    ///   - waits: when to wait, until the task is cancelled.
    func ask(maxAge: Int64?, lease: Int64?, waits: FetchWait) async throws -> FetchReply<Value>
    /// Looks up several keys, in order and without waiting.
    /// - Returns: the replies, all of them or up to the first error. Every lease that was granted is among them.
    static func askAll(_ backends: [Self], maxAge: Int64?, lease: Int64?) async -> [Result<
        FetchReply<Value>, any Error
    >]
    /// Ends leases, in order, with the fetched values. Leases that cannot be ended in this way are released.
    /// - Returns: the first error.
    static func endAll(_ ends: [FetchEnd<Self>], _ options: CheckedFetch) async -> (any Error)?
    /// Stores a fetched value. Does nothing if the lease is no longer valid.
    /// - Parameter options: with the policy and the tags of the entry.
    func store(_ value: Value, token: UInt64, _ options: CheckedFetch) async throws
    func release(token: UInt64, _ release: FetchRelease) async
    /// Returns how to release the lease if the closure threw an error while a caller was waiting.
    func release(after error: any Error, _ options: CheckedFetch) -> FetchRelease
    /// Reports an error that no caller was left to receive.
    func failedInBackground(_ error: any Error)
}

/// The end of a lease for one key.
package struct FetchEnd<Backend: FetchBackend>: Sendable {
    package let backend: Backend
    package let token: UInt64
    /// Nil if the origin has no value.
    package let value: Backend.Value?

    /// How to release the lease if there is no value.
    package func release(_ options: CheckedFetch) -> FetchRelease { .absent(milliseconds: max(1, options.absent)) }
}

extension FetchBackend {
    /// If the closure cancelled itself, nothing is known about the origin.
    package func release(after error: any Error, _ options: CheckedFetch) -> FetchRelease {
        error is CancellationError || options.backOff <= 0 ? .open : .failed(milliseconds: options.backOff)
    }

    package static func askAll(
        _ backends: [Self], maxAge: Int64?, lease: Int64?
    ) async -> [Result<FetchReply<Value>, any Error>] {
        var answers: [Result<FetchReply<Value>, any Error>] = []
        for backend in backends {
            do {
                answers.append(.success(try await backend.ask(maxAge: maxAge, lease: lease, waits: .never)))
            } catch {
                answers.append(.failure(error))
                break
            }
        }
        return answers
    }

    package static func endAll(_ ends: [FetchEnd<Self>], _ options: CheckedFetch) async -> (any Error)? {
        var failure: (any Error)?
        for end in ends {
            guard let value = end.value else {
                await end.backend.release(token: end.token, end.release(options))
                continue
            }
            do {
                try await end.backend.store(value, token: end.token, options)
            } catch {
                failure = failure ?? error
                await end.backend.release(token: end.token, .open)
            }
        }
        return failure
    }
}

/// The keys that the running closure fetches, for the detection of deadlocks: see ``WaitGraph``.
package enum FetchContext {
    @TaskLocal package static var names: [FetchName] = []
}
