import LarderVocabulary

/// The identity of a key in fetches: the same for all handles of a database.
package struct FetchName: Hashable, Sendable {
    let owner: ObjectIdentifier
    package let key: [UInt8]
    package let database: String

    /// - Parameter owner: the object that represents the database, the same for all its handles.
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

/// A cached value that is returned with a lease: the caller that gets the lease must fetch a newer value.
package struct FoundValue<Value> {
    package let value: Value
    package let isFresh: Bool
    /// Whether the value is not older than the caller's maximum age.
    package let isYoung: Bool

    package init(_ value: Value, isFresh: Bool, isYoung: Bool) {
        (self.value, self.isFresh, self.isYoung) = (value, isFresh, isYoung)
    }
}

/// The cache's reply to a caller that is ready to fetch.
package enum FetchReply<Value> {
    case fresh(Value)
    /// The value is stale, but may be served: another caller is fetching the key, or the key's back-off is not over.
    case stale(Value)
    /// The caller has got the lease with this token and must fetch the key. There may be a cached value.
    case lead(token: UInt64, FoundValue<Value>?)
    /// Another caller is fetching the key, and there is no value to serve.
    case wait
    /// A recent fetch has found that the origin has no value for the key.
    case absent
    /// The last fetch failed. The key may not be fetched for another `milliseconds`, and there is no value to serve.
    case failed(milliseconds: Int64)
}

extension FoundValue: Sendable where Value: Sendable {}
extension FetchReply: Sendable where Value: Sendable {}

/// Whether a lookup waits while another caller is fetching the key.
package enum FetchWait: Hashable, Sendable {
    /// Does not wait: returns ``FetchReply/wait``.
    case never
    /// Waits if there is no value to serve.
    case ifNothingServes
    /// Waits even if a stale value is available. Daemons treat it as ``ifNothingServes``.
    case ifNothingIsFresh
}

/// Access to one key of a cache for callers that fetch it: through the engine in this process, or through the daemon.
package protocol FetchBackend<Value>: Sendable {
    associatedtype Value: Sendable

    var name: FetchName { get }
    /// The current time in milliseconds, by the clock that measures leases.
    func now() -> Int64
    /// Looks the key up. May grant the caller the lease to fetch it.
    /// - Parameters:
    ///   - maxAge: in milliseconds; nil for any age.
    ///   - lease: the duration of the lease in milliseconds; nil for the default.
    ///   - waits: whether to wait for another caller's fetch. A wait ends when the task is cancelled.
    func ask(maxAge: Int64?, lease: Int64?, waits: FetchWait) async throws -> FetchReply<Value>
    /// Looks up several keys, in order and without waiting.
    /// - Returns: one reply for each key, up to and including the first error. The replies contain every granted lease.
    static func askAll(_ backends: [Self], maxAge: Int64?, lease: Int64?) async -> [Result<
        FetchReply<Value>, any Error
    >]
    /// Ends several leases, in order: stores the fetched values, or the absence of a value. If a value cannot be
    /// stored, releases its lease.
    /// - Returns: the first error; nil if all results were stored.
    static func endAll(_ ends: [FetchEnd<Self>], _ options: CheckedFetch) async -> (any Error)?
    /// Stores a fetched value and ends the lease. Does nothing if the lease is no longer valid.
    /// - Parameter options: contain the policy and the tags of the entry.
    func store(_ value: Value, token: UInt64, _ options: CheckedFetch) async throws
    /// Ends the lease without storing a value.
    func release(token: UInt64, _ release: FetchRelease) async
    /// Returns how to release the lease after the closure has thrown an error.
    func release(after error: any Error, _ options: CheckedFetch) -> FetchRelease
    /// Reports the error of a fetch in the background, for which no caller waits.
    func failedInBackground(_ error: any Error)
}

/// The lease for one key, and the result of the fetch that ends it.
package struct FetchEnd<Backend: FetchBackend>: Sendable {
    package let backend: Backend
    package let token: UInt64
    /// Nil if the origin has no value.
    package let value: Backend.Value?

    /// Returns how to release the lease if the origin has no value.
    package func release(_ options: CheckedFetch) -> FetchRelease { .absent(milliseconds: max(1, options.absent)) }
}

extension FetchBackend {
    /// After a `CancellationError` nothing is known about the origin, so the next caller may fetch immediately.
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

/// The keys that the running closures of the current task fetch. Used to detect deadlocks: see ``WaitGraph``.
package enum FetchContext {
    @TaskLocal package static var names: [FetchName] = []
}
