import LarderRESP

/// One call of the ``Origin`` protocol. It completes exactly once. Used on the loop's thread only.
class RedisCall {
    /// The time at which the call fails, in nanoseconds of the monotonic clock.
    let deadline: Int64
    private(set) var isDone = false
    /// The error because of which the call is retried. If the call times out, it fails with this error.
    var lastError: OriginError?
    /// The tasks of the call: the requests that it sends to servers.
    var tasks: [RedisTask] = []

    init(deadline: Int64) { self.deadline = deadline }

    /// Marks the call as done.
    /// - Returns: whether the call was still pending.
    fileprivate func finish() -> Bool {
        defer {
            isDone = true
            tasks = []
        }
        return !isDone
    }

    /// Completes the call with an error.
    func fail(_ error: OriginError) {}
}

/// The result of reading a key, and the invalidation sequence number when its value was received.
struct TimedReading {
    var reading: OriginReading
    /// See ``InvalidationTracker/sequence``.
    var heard: UInt64
}

final class RedisReadCall: RedisCall {
    typealias Completion = ([Result<OriginReading, OriginError>]) -> Void

    private var results: [Result<TimedReading, OriginError>?]
    private var missing: Int
    private let completion: Completion
    /// The total size of the values received from the servers that own the keys, in bytes.
    private(set) var bytes = 0
    /// Receives the replies of replicas, at most one for each key. If nil, the first reply for a key is the key's
    /// result, even if a replica sent it.
    var meanwhile: ((_ key: Int, OriginReading) -> Void)?
    private var heardMeanwhile: Set<Int> = []
    /// The total size of the values received from replicas, in bytes.
    private(set) var bytesMeanwhile = 0

    /// Handles the reply of a replica for the key with this index.
    func hear(_ index: Int, fromReplica reading: TimedReading) {
        guard isMissing(index) else { return }
        guard let meanwhile else { return answer(index, .success(reading)) }
        guard heardMeanwhile.insert(index).inserted else { return }
        bytesMeanwhile += reading.reading.value?.count ?? 0
        meanwhile(index, reading.reading)
    }

    /// Returns the stamp of a key when the call completes: nil if the key may have changed since it was read.
    var check: (_ key: Int, TimedReading) -> OriginStamp? = { $1.reading.stamp }

    init(count: Int, deadline: Int64, _ completion: @escaping Completion) {
        results = Array(repeating: nil, count: count)
        missing = count
        self.completion = completion
        super.init(deadline: deadline)
    }

    func isMissing(_ index: Int) -> Bool { !isDone && results[index] == nil }

    func answer(_ index: Int, _ result: Result<TimedReading, OriginError>) {
        guard isMissing(index) else { return }
        if case .success(let heard) = result { bytes += heard.reading.value?.count ?? 0 }
        results[index] = result
        missing -= 1
        if missing == 0 { complete(.closed) }
    }

    /// Completes the call. Keys without a reply get the error.
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

/// A call with one result, which may be the sum of several answers.
final class RedisAnswerCall<Answer>: RedisCall {
    typealias Completion = (Result<Answer, OriginError>) -> Void
    private let completion: Completion
    private let add: (Answer, Answer) -> Answer
    private var missing: Int
    private var sum: Answer?
    private var error: OriginError?

    /// - Parameters:
    ///   - parts: the number of answers.
    ///   - add: combines two answers.
    init(
        parts: Int = 1, deadline: Int64, add: @escaping (Answer, Answer) -> Answer = { $1 },
        _ completion: @escaping Completion
    ) {
        missing = parts
        self.add = add
        self.completion = completion
        super.init(deadline: deadline)
    }

    func answer(_ result: Result<Answer, OriginError>) {
        switch result {
        case .success(let answer): sum = sum.map { add($0, answer) } ?? answer
        case .failure(let error): if self.error?.isUncertain != true { self.error = error }
        }
        missing -= 1
        guard missing == 0, finish() else { return }
        completion(error.map { .failure($0) } ?? sum.map { .success($0) } ?? .failure(.closed))
    }

    override func fail(_ error: OriginError) { if finish() { completion(.failure(error)) } }
}

typealias RedisWriteCall = RedisAnswerCall<OriginAcknowledgement>
typealias RedisCommandCall = RedisAnswerCall<RESPValue>
typealias RedisRemoveCall = RedisAnswerCall<Int>
