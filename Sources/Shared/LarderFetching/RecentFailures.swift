/// The errors because of which the origins of keys back off. Bounded.
struct RecentFailures {
    private static let most = 1024
    private var failures: [FetchName: (error: any Error, until: Int64)] = [:]

    /// - Parameters:
    ///   - until: the end of the back-off, by the clock of `now`.
    mutating func note(_ error: any Error, _ name: FetchName, until: Int64, now: Int64) {
        if failures.count >= Self.most { failures = failures.filter { now < $0.value.until } }
        if failures.count >= Self.most { failures = [:] }
        failures[name] = (error, until)
    }

    /// The closure has returned a value, so the failure is forgotten.
    mutating func forget(_ name: FetchName) { if !failures.isEmpty { failures[name] = nil } }

    func error(_ name: FetchName, now: Int64) -> (any Error)? {
        failures[name].flatMap { now < $0.until ? $0.error : nil }
    }
}
