import LarderClient

/// What the daemon says of itself at one instant.
struct DaemonFigures: Sendable {
    struct Command: Sendable {
        let name: String
        let calls: Double
        let seconds: Double
        let rejected: Double
        let failed: Double
        /// By the share of calls that took at most so many seconds.
        let percentiles: [(share: String, seconds: Double)]
    }

    let info: InfoText
    /// With calls, the most often called first.
    let commands: [Command]
    /// Fresh entries by database, as far as the daemon has counted them.
    let entries: [String: Double]
    /// Of these, those with a deadline.
    let expiring: [String: Double]
    /// Whether the daemon has counted all databases; it has not when it has just been started.
    let isCounted: Bool

    init(_ text: String) {
        let info = InfoText(text)
        self.info = info
        isCounted = info.number("uncounted_databases") ?? 0 == 0
        let percentiles = Dictionary(
            info.lists("latency_percentiles_usec_").map { ($0.name, $0.parts) }, uniquingKeysWith: { first, _ in first }
        )
        commands = info.lists("cmdstat_").map { name, parts in
            let shares = percentiles[name] ?? [:]
            return Command(
                name: name, calls: parts["calls"] ?? 0, seconds: (parts["usec"] ?? 0) / 1_000_000,
                rejected: parts["rejected_calls"] ?? 0, failed: parts["failed_calls"] ?? 0,
                percentiles: [("0.5", "p50"), ("0.99", "p99"), ("0.999", "p99.9")].compactMap { share, key in
                    shares[key].map { (share, $0 / 1_000_000) }
                })
        }.sorted { ($1.calls, $0.name) < ($0.calls, $1.name) }
        let counted =
            info.lists("database_").map { ($0.name, $0.parts) }
            + info.lists("db").compactMap { Int($0.name) == nil ? nil : ($0.name, $0.parts) }
        entries = Dictionary(counted.compactMap { name, parts in parts["keys"].map { (name, $0) } }) { first, _ in first
        }
        expiring = Dictionary(counted.compactMap { name, parts in parts["expires"].map { (name, $0) } }) { $1 }
    }
}
