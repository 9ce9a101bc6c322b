import LarderClient
import LarderPlatform

/// Exports the entries of databases as lines. For one thread at a time.
///
/// Memory does not grow with the larder: the entries in a reply to ENTRIES are written before the next request.
struct Exporter {
    /// The result of an export.
    struct Report {
        var databases = 0
        /// The number of entries, including those that an interrupted export had written.
        var entries = 0
        /// The number of bytes, including those that an interrupted export had written.
        var byteCount = 0
        /// The number of entries that an interrupted export had written.
        var resumed = 0

        mutating func resume(_ previous: ExportFile.Previous) {
            (entries, resumed, byteCount) = (previous.entries, previous.entries, previous.byteCount)
        }
    }

    let client: BlockingLarderClient
    let header: ExportHeader
    /// The approximate number of entries to export; 0 if unknown.
    let total: Int
    let progress = ProgressLine(.entries)
    private(set) var report = Report()

    /// Determines the databases to export. Writes nothing yet.
    /// - Parameter names: the names of the databases; empty for all.
    init(_ client: BlockingLarderClient, databases names: [String], prefix: [UInt8]) throws {
        self.client = client
        // Count the databases before listing them. In the other order, a database created in between would look like
        // one that this user must not read.
        let count = names.isEmpty ? try Self.databaseCount(client) : 0
        let known = try client.databases()
        for name in names where !known.contains(where: { $0.name == name }) {
            throw UsageError(
                "there is no database '\(printableKey(name.utf8))'"
                    + Suggestion.text(for: name, among: known.map(\.name)))
        }
        let chosen = known.filter {
            // Without names, skip outboxes: their pending writes must be delivered only by their own larder.
            names.isEmpty ? !CompanionName.isOne($0.name) : names.contains($0.name)
        }
        var header = ExportHeader(
            created: Self.now(), larder: Self.larder(client), databases: chosen.map(\.name),
            isOfAll: names.isEmpty && known.count >= count, prefix: prefix)
        for name in header.databases {
            try client.select(name)
            header.indexes[name] = try client.indexes()
        }
        self.header = header
        if names.isEmpty, !header.isOfAll {
            Output.standardError(
                "larderctl: this user may read \(known.count) of \(count) databases; the others are not exported\n")
        }
        total = prefix.isEmpty ? chosen.reduce(0) { $0 + Int(($1.entries ?? 0) + ($1.staleEntries ?? 0)) } : 0
        report.databases = chosen.count
    }

    /// Returns the number of databases, including those that this user must not read; 0 if unknown.
    private static func databaseCount(_ client: BlockingLarderClient) throws -> Int {
        InfoText(try client.serverInfo(section: "larder")).text("databases").flatMap { Int($0) } ?? 0
    }

    static func now() -> Int64 {
        var time = timespec()
        clock_gettime(CLOCK_REALTIME, &time)
        return Int64(time.tv_sec) * 1000 + Int64(time.tv_nsec) / 1_000_000
    }

    /// Returns the directory of the daemon's larder; nil if unknown.
    static func larder(_ client: BlockingLarderClient) -> String? {
        guard let pairs = try? client.command(["CONFIG"] + ["GET", "dir"]).pairs else { return nil }
        return pairs.first?.value.string
    }

    /// Writes the export to standard output.
    mutating func run(to output: Output) throws { try run(nil, output) }

    /// Writes the export to a file. Continues an interrupted export if there is one.
    mutating func run(to file: ExportFile) throws {
        let previous = try file.resume()
        if let previous, !previous.header.isSameExport(as: header) {
            throw UsageError(
                "\(file.partPath) is an unfinished export of \(Self.text(previous.header)), not of "
                    + "\(Self.text(header)): complete it with the same options, or remove it")
        }
        if previous?.isComplete != true {
            try run(previous, Output { (bytes) throws(InputOutputError) in try file.write(bytes) })
        } else if let previous {
            report.resume(previous)
        }
        try file.finish()
    }

    private static func text(_ header: ExportHeader) -> String {
        let names = header.databases.map { "'\($0)'" }.joined(separator: ", ")
        return "the larder \(header.larder ?? "?"), databases \(names.isEmpty ? "none" : names)"
            + (header.prefix.isEmpty ? "" : ", prefix '\(printableKey(header.prefix))'")
    }

    private mutating func run(_ previous: ExportFile.Previous?, _ lines: Output) throws {
        defer { progress.end() }
        if let previous {
            report.resume(previous)
        } else {
            lines.json(header.line)
        }
        // A continued export uses the databases in its first line, so it does not include databases created since then.
        var databases = (previous?.header ?? header).databases[...]
        report.databases = databases.count
        if let database = previous?.database { databases = databases.drop { $0 != database } }
        for database in databases {
            try client.select(database)
            let isBegun = database == previous?.database
            if !isBegun { try addDatabase(database, lines) }
            try addEntries(database, after: isBegun ? previous?.lastKey : nil, lines)
        }
        // The last line shows that the export is complete.
        lines.json(["end": true, "entries": report.entries])
        try lines.flush()
        report.byteCount += lines.byteCount
    }

    private func addDatabase(_ name: String, _ lines: Output) throws {
        let info = try client.policyInfo()
        guard let policy = UpdatePolicy(info.policy) else {
            throw LarderClientError.unexpectedReply(to: "POLICY", "a policy")
        }
        lines.json(
            DatabaseLine(
                database: name, policy: policy, grace: info.graceMilliseconds, jitter: Int64(info.jitterPercent)
            ).line)
    }

    private mutating func addEntries(_ database: String, after key: [UInt8]?, _ lines: Output) throws {
        try EntryReader(client: client, prefix: header.prefix).forEachStep(after: key) { entries in
            for entry in entries {
                try entry.writeLine(database, to: lines)
                report.entries += 1
            }
            progress.show(done: report.entries, total: total)
        }
    }
}
