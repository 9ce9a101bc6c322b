import LarderClient
import LarderRESP

/// Exports the fresh entries of a daemon to a Redis, while other clients may use both. For one thread at a time.
struct RedisExport {
    struct Report {
        var exported = 0
        /// Stale entries, which were not exported, because Redis has none.
        var stale = 0
        var databases = 0
    }

    let redis: RedisServer
    let reader: EntryReader
    /// The approximate number of entries to export; 0 if unknown.
    let total: Int
    let progress = ProgressLine(.entries)
    private(set) var report = Report()

    private static let batchCount = 256
    private static let batchBytes = 1 << 20

    mutating func run(_ databases: [(name: String, number: Int)]) throws {
        defer { progress.end() }
        // First select each database number, so that an invalid one is reported before anything is stored.
        for database in databases { try redis.select(database.number) }
        for database in databases {
            try redis.select(database.number)
            try reader.client.select(database.name)
            try reader.forEachStep(database.name) { entries in
                try store(entries)
                progress.show(done: report.exported + report.stale, total: total)
            }
            report.databases += 1
        }
    }

    private mutating func store(_ entries: [CarriedEntry]) throws(Failure) {
        var rest = entries[...]
        while !rest.isEmpty {
            var requests: [[[UInt8]]] = []
            var bytes = 0
            let now = Exporter.now()
            while let entry = rest.first, requests.count < Self.batchCount,
                requests.isEmpty || bytes + entry.value.count <= Self.batchBytes
            {
                rest.removeFirst()
                var words = [Array("SET".utf8), entry.key, entry.value]
                if let deadline = entry.deadline {
                    guard deadline > now else {
                        report.stale += 1
                        continue
                    }
                    words += [Array("PX".utf8), Array("\(deadline - now)".utf8)]
                }
                requests.append(words)
                bytes += entry.value.count
            }
            for reply in try redis.exchange(requests) {
                try redis.checked(reply)
                report.exported += 1
            }
        }
    }
}
