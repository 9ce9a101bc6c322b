import LarderEngine
import LarderOriginClients
import LarderOutboxes
import LarderPlatform

extension OriginTier {
    /// The fields that ORIGIN and INFO show.
    var fields: [(String, String)] {
        let status = origin.status()
        let down = status.servers.filter { !$0.isUp }
        let state = down.count == status.servers.count ? "down" : down.isEmpty ? "up" : "partly"
        return [
            ("url", origin.name), ("writing", settings.writing.rawValue.lowercased()),
            ("stale", settings.servesStale ? "yes" : "no"), ("hears", hears.name), ("bound", "\(staleness ?? -1)"),
            ("replicas", "\(settings.reads.secondReadAfter ?? 0)"), ("prefixes", hears.prefixes), ("state", state),
            ("error", down.lazy.compactMap(\.lastError).first ?? ""),
            ("down-milliseconds", "\(down.compactMap(\.downSince).min().map(Self.elapsed) ?? 0)"),
            ("servers", "\(status.servers.count)"),
            ("servers-down", "\(down.count)"), ("known", "\(keyCount)"), ("asked", "\(counts.asked.read())"),
            ("joined", "\(counts.joined.read())"), ("failed", "\(counts.failed.read())"),
            ("stale-served", "\(counts.stale.read())"), ("replica-answers", "\(counts.replicas.read())"),
            ("replica-served", "\(counts.replicasServed.read())"), ("written", "\(counts.written.read())"),
            ("invalidated", "\(counts.invalidated.read())"), ("lost", "\(counts.lost.read())"),
            ("timeouts", "\(status.timeouts)"), ("redirections", "\(status.redirections)"),
            ("heartbeat-microseconds", "\(status.servers.map(\.heartbeatMicroseconds).max() ?? 0)"),
        ] + outboxFields
    }

    private static func elapsed(since instant: Int64) -> Int64 {
        max(0, MonotonicClock.nanoseconds() - instant) / 1_000_000
    }

    private var hears: (name: String, prefixes: String) {
        switch settings.reads.hearing {
        case .tracking: ("tracking", "")
        case .broadcast(let prefixes): ("broadcast", prefixes.joined(separator: " "))
        case .lifetimes: ("lifetimes", "")
        }
    }

    /// The fields about the outbox: the number and the age of queued writes, and the results of deliveries.
    private var outboxFields: [(String, String)] {
        guard let outbox else { return [] }
        let age = outbox.index.oldest.map { max(0, surroundings.engine.now() - $0) } ?? 0
        return [
            ("outbox", "\(outbox.index.waiting)"), ("outbox-oldest-milliseconds", "\(age)"),
            ("delivered", "\(outbox.counts.delivered.read())"), ("retried", "\(outbox.counts.retried.read())"),
            ("refused", "\(outbox.counts.refused.read())"), ("superseded", "\(outbox.counts.superseded.read())"),
        ]
    }
}
