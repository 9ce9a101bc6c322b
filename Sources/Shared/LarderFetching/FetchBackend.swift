import LarderVocabulary

/// What is fetched: the key of an entry. Two handles of one database have the same names.
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

/// A value that the cache has beside the right to fetch another one.
package struct FoundValue<Value: Sendable>: Sendable {
    package let value: Value
    package let isFresh: Bool
    /// Whether it is as young as the caller wants.
    package let isYoung: Bool

    package init(_ value: Value, isFresh: Bool, isYoung: Bool) {
        self.value = value
        self.isFresh = isFresh
        self.isYoung = isYoung
    }
}

/// What the cache answers a caller who would fetch.
package enum FetchReply<Value: Sendable>: Sendable {
    /// The value is fresh.
    case fresh(Value)
    /// The value may be served: somebody else fetches, or the origin rests.
    case stale(Value)
    /// The caller fetches.
    case lead(token: UInt64, FoundValue<Value>?)
    /// Somebody else fetches, and there is nothing to serve.
    case wait
    /// The origin has no value, and that is remembered.
    case absent
    /// The origin rests for so many milliseconds, and there is nothing to serve.
    case failed(milliseconds: Int64)
}

/// How a caller gives its right to fetch back without storing a value.
package enum FetchRelease: Hashable, Sendable {
    case open
    /// The origin has no value; remembered for so many milliseconds.
    case absent(milliseconds: Int64)
    /// The origin failed; it rests for so many milliseconds.
    case failed(milliseconds: Int64)
}

/// Whether a question to a cache waits for whoever fetches the key.
package enum FetchWait: Hashable, Sendable {
    /// The answer is `wait`.
    case never
    /// If there is nothing to serve.
    case ifNothingServes
    /// Also if there is something stale. Daemons answer as with ``ifNothingServes``.
    case ifNothingIsFresh
}

/// One key in a cache, for who fetches its value: the engine in this process, or the daemon.
package protocol FetchBackend<Value>: Sendable {
    associatedtype Value: Sendable

    var name: FetchName { get }
    /// Milliseconds of the clock by which rights to fetch end.
    func now() -> Int64
    /// - Parameters:
    ///   - maxAge: in milliseconds; nil for any age.
    ///   - lease: how long the right to fetch is good, in milliseconds; nil for the standard time.
    ///   - waits: when to wait, as long as the task is not cancelled.
    func ask(maxAge: Int64?, lease: Int64?, waits: FetchWait) async throws -> FetchReply<Value>
    /// Asks about several keys, in order and without waiting.
    /// - Returns: the answers, up to the first error or with all of them. Every right to fetch that was given is there.
    static func askAll(_ backends: [Self], maxAge: Int64?, lease: Int64?) async -> [Result<
        FetchReply<Value>, any Error
    >]
    /// Ends rights to fetch, in order. Those that cannot end with what was fetched are released.
    /// - Returns: the first error.
    static func endAll(_ ends: [FetchEnd<Self>], _ options: CheckedFetch) async -> (any Error)?
    /// Stores a value that was fetched. Does nothing if the right to do so is gone.
    /// - Parameter options: with the policy and the tags of the entry.
    func store(_ value: Value, token: UInt64, _ options: CheckedFetch) async throws
    func release(token: UInt64, _ release: FetchRelease) async
    /// What is released when the closure has thrown an error to a caller who had not gone.
    func release(after error: any Error, _ options: CheckedFetch) -> FetchRelease
    /// Nobody was left to whom the error could be thrown.
    func failedInBackground(_ error: any Error)
}

/// The end of a right to fetch one key.
package struct FetchEnd<Backend: FetchBackend>: Sendable {
    package let backend: Backend
    package let token: UInt64
    /// Nil if the origin has none.
    package let value: Backend.Value?

    /// What is released instead of a value.
    package func release(_ options: CheckedFetch) -> FetchRelease { .absent(milliseconds: max(1, options.absent)) }
}

extension FetchBackend {
    /// Where the closure was cancelled by itself nothing is known about the origin.
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

/// Which keys the running closure fetches. Those of a closure that waits for it are known where it waits: see
/// ``WaitGraph``.
package enum FetchContext {
    @TaskLocal package static var names: [FetchName] = []
}
