import LarderClient
import LarderPlatform
import LarderVocabulary

/// The output of `keys --long`: entries with size, lifetime, policy and state, ordered by key.
///
/// Memory does not grow with the database: the entries in a reply to ENTRIES are written before the next request.
struct LongListing {
    let client: BlockingLarderClient
    let context: Context

    /// - Parameter pattern: the glob pattern of the keys to list; nil for all.
    func write(matching pattern: [UInt8]?) throws {
        let glob = pattern.map { GlobPattern($0) }
        let policy = try client.policyInfo().policy
        if !context.options.json { context.output.line(Self.line("SIZE", "EXPIRES IN", "POLICY", "STATE") + "KEY") }
        try EntryReader(client: client, prefix: glob?.fixedPrefix ?? []).forEachStep(client.name) { entries in
            let now = try now()
            for entry in entries where glob?.matches(entry.key) ?? true {
                write(entry, policy, now: now)
                try context.output.flushIfLarge()
            }
        }
    }

    /// Returns the daemon's time, with which deadlines are compared, in milliseconds since 1970.
    private func now() throws -> Int64 {
        guard let parts = try client.command("TIME").elements?.compactMap(\.int), parts.count == 2,
            let seconds = parts.first, (0...1 << 40).contains(seconds), let microseconds = parts.last
        else { throw LarderClientError.unexpectedReply(to: "TIME", "seconds and microseconds") }
        return seconds * 1000 + microseconds / 1000
    }

    private func write(_ entry: CarriedEntry, _ policy: String, now: Int64) {
        let left = entry.deadline.map { $0.subtractingReportingOverflow(now).partialValue }
        let state = left.map { $0 > 0 } ?? true ? "fresh" : "stale"
        context.show([
            "key": entry.key, "size": entry.value.count, "ttl": left, "deadline": entry.deadline,
            "stored-at": entry.storedAt, "rule": entry.rule.name, "state": state, "codec": entry.codec,
            "tags": entry.tags,
        ]) { output in
            let size = output.size(Int64(entry.value.count))
            let rule = entry.rule == .governed ? policy : entry.rule.name
            let line = Self.line(size, left.map { TimeText.short($0) } ?? "never", rule, state)
            output.oneLine(Array(line.utf8) + entry.key)
        }
    }

    /// Formats a line. Columns have fixed widths, because later lines are unknown. A longer field moves those after it.
    private static func line(_ size: String, _ left: String, _ policy: String, _ state: String) -> String {
        size.padded(9, isRight: true) + "  " + left.padded(10, isRight: true) + "  " + policy.padded(9) + "  "
            + state.padded(5) + "  "
    }
}
