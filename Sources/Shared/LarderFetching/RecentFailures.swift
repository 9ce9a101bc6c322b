/// The errors of failed fetches, by key, until the back-off of the key ends. At most 1024 errors.
struct RecentFailures {
    private static let most = 1024
    private var failures: [FetchName: (error: any Error, until: Int64)] = [:]

    /// - Parameters:
    ///   - until: the end of the back-off in milliseconds, by the same clock as `now`.
    mutating func note(_ error: any Error, _ name: FetchName, until: Int64, now: Int64) {
        if failures.count >= Self.most { failures = failures.filter { now < $0.value.until } }
        if failures.count >= Self.most { failures = [:] }
        failures[name] = (error, until)
    }

    /// Removes a key's error. Called after its closure has returned a value.
    mutating func forget(_ name: FetchName) { if !failures.isEmpty { failures[name] = nil } }

    func error(_ name: FetchName, now: Int64) -> (any Error)? {
        failures[name].flatMap { now < $0.until ? $0.error : nil }
    }
}
