import LarderRESP

/// A call of an origin's user. Completes once. Confined to the loop.
class RedisCall {
    /// The deadline, in nanoseconds of the monotonic clock.
    let deadline: Int64
    private(set) var isDone = false
    /// Why the call is retried; reported instead of a mere timeout.
    var lastError: OriginError?
    /// The call's unfinished tasks.
    var tasks: [RedisTask] = []

    init(deadline: Int64) { self.deadline = deadline }

    /// - Returns: whether the call was still pending.
    fileprivate func finish() -> Bool {
        defer {
            isDone = true
            tasks = []
        }
        return !isDone
    }

    /// Fails the whole call.
    func fail(_ error: OriginError) {}
}

/// The result of reading a key, and the invalidation sequence at that time.
struct HeardReading {
    var reading: OriginReading
    /// See ``InvalidationMemory``.
    var heard: UInt64
}

final class RedisReadCall: RedisCall {
    typealias Completion = ([Result<OriginReading, OriginError>]) -> Void

    private var results: [Result<HeardReading, OriginError>?]
    private var missing: Int
    private let completion: Completion
    /// The bytes of the values received.
    private(set) var bytes = 0
    /// Receives the replies of replicas, at most one per key. If nil, the first reply completes the key, from whichever
    /// server.
    var meanwhile: ((_ key: Int, OriginReading) -> Void)?
    private var heardMeanwhile: Set<Int> = []
    /// The bytes of the values that replicas have sent.
    private(set) var bytesMeanwhile = 0

    /// Receives the reply of a replica.
    func hear(_ index: Int, fromReplica reading: HeardReading) {
        guard isMissing(index) else { return }
        guard let meanwhile else { return answer(index, .success(reading)) }
        guard heardMeanwhile.insert(index).inserted else { return }
        bytesMeanwhile += reading.reading.value?.count ?? 0
        meanwhile(index, reading.reading)
    }

    /// Decides the stamp of a key when the call completes.
    var check: (_ key: Int, HeardReading) -> OriginStamp? = { $1.reading.stamp }

    init(count: Int, deadline: Int64, _ completion: @escaping Completion) {
        results = Array(repeating: nil, count: count)
        missing = count
        self.completion = completion
        super.init(deadline: deadline)
    }

    func isMissing(_ index: Int) -> Bool { !isDone && results[index] == nil }

    func answer(_ index: Int, _ result: Result<HeardReading, OriginError>) {
        guard isMissing(index) else { return }
        if case .success(let heard) = result { bytes += heard.reading.value?.count ?? 0 }
        results[index] = result
        missing -= 1
        if missing == 0 { complete(.closed) }
    }

    /// Fails the keys without a reply.
    override func fail(_ error: OriginError) { complete(error) }

    private func complete(_ error: OriginError) {
        guard finish() else { return }
        let all = results.enumerated().map { index, result -> Result<OriginReading, OriginError> in
            switch result {
            case .success(let heard)?:
                var reading = heard.reading
                reading.stamp = check(index, heard)
                return .success(reading)
            case .failure(let error)?: return .failure(error)
            case nil: return .failure(error)
            }
        }
        results = []
        check = { _, _ in nil }
        meanwhile = nil
        completion(all)
    }
}

/// A call with one reply.
final class RedisAnswerCall<Answer>: RedisCall {
    typealias Completion = (Result<Answer, OriginError>) -> Void
    private let completion: Completion

    init(deadline: Int64, _ completion: @escaping Completion) {
        self.completion = completion
        super.init(deadline: deadline)
    }

    func answer(_ result: Result<Answer, OriginError>) { if finish() { completion(result) } }
    override func fail(_ error: OriginError) { answer(.failure(error)) }
}

typealias RedisWriteCall = RedisAnswerCall<OriginAcknowledgement>
typealias RedisCommandCall = RedisAnswerCall<RESPValue>

/// Removes keys, each at its own server.
final class RedisRemoveCall: RedisCall {
    typealias Completion = (Result<Int, OriginError>) -> Void
    private let completion: Completion
    private var missing: Int
    private var removed = 0
    private var error: OriginError?

    init(parts: Int, deadline: Int64, _ completion: @escaping Completion) {
        missing = parts
        self.completion = completion
        super.init(deadline: deadline)
    }

    func answer(_ result: Result<Int, OriginError>) {
        switch result {
        case .success(let count): removed += count
        case .failure(let error): if self.error?.isUncertain != true { self.error = error }
        }
        missing -= 1
        guard missing == 0, finish() else { return }
        completion(error.map { .failure($0) } ?? .success(removed))
    }

    override func fail(_ error: OriginError) { if finish() { completion(.failure(error)) } }
}
