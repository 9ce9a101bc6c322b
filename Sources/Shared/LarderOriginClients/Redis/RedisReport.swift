import LarderPlatform

/// The counters of an origin, and the latest state of its servers, for other threads to read.
///
/// Thread-safe. `@unchecked Sendable`: mutable state is guarded by `lock`.
@dynamicMemberLookup
final class RedisReport: @unchecked Sendable {
    private let lock = Lock()
    private var status = OriginStatus()

    var all: OriginStatus { lock.withLock { status } }

    /// One of the status values. Adding to a value need not be atomic, because only one thread changes the values.
    subscript<Value>(dynamicMember path: WritableKeyPath<OriginStatus, Value>) -> Value {
        get { lock.withLock { status[keyPath: path] } }
        set { lock.withLock { status[keyPath: path] = newValue } }
    }

    func countInvalidations(_ count: Int) { lock.withLock { status.invalidations += count } }

    func count(_ results: [Result<OriginReading, OriginError>]) {
        lock.withLock {
            for result in results {
                switch result {
                case .success(let reading):
                    status.reads += 1
                    if reading.value == nil { status.absentReads += 1 }
                case .failure: status.failures += 1
                }
            }
        }
    }

    func count<Success>(_ result: Result<Success, OriginError>) {
        if case .failure = result { lock.withLock { status.failures += 1 } }
    }
}
