import LarderClient

/// The daemon's figures at one instant.
struct DaemonFigures: Sendable {
    struct Command: Sendable {
        let name: String
        let calls: Double
        let seconds: Double
        let rejected: Double
        let failed: Double
        /// The latency in seconds for each percentile of calls.
        let percentiles: [(share: String, seconds: Double)]
    }

    let info: InfoText
    /// The commands with calls, most frequent first.
    let commands: [Command]
    /// The number of fresh entries by database, for the databases that the daemon has counted.
    let entries: [String: Double]
    /// The number of fresh entries that have a deadline, by database.
    let expiring: [String: Double]
    /// Whether the daemon has counted all databases; false just after its start.
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
