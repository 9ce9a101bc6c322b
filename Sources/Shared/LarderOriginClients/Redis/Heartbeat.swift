import LarderPlatform
import LarderRESP

/// A request that checks whether a server responds and still owns its slots. Used on the loop's thread only.
final class Heartbeat: RedisExchange {
    enum Answer {
        /// The server responds. The value is the cluster report if it was requested.
        case good(ClusterReport?)
        /// The server has sent this error.
        case bad(String)
    }

    struct ClusterReport {
        let description: String
        let servers: Int
    }

    /// The key to read, which is in one of the server's slots; nil for a single server.
    private let key: [UInt8]?
    private let asksForReport: Bool
    private let finished: (Heartbeat, Answer) -> Void
    private(set) var sentAt: Int64 = 0
    private var bad: String?
    private var report: ClusterReport?
    private var count = 0

    init(key: [UInt8]?, asksForReport: Bool, _ finished: @escaping (Heartbeat, Answer) -> Void) {
        self.key = key
        self.asksForReport = asksForReport
        self.finished = finished
    }

    func encode(into output: inout [UInt8]) -> Int {
        sentAt = MonotonicClock.nanoseconds()
        guard let key else {
            RequestEncoder.encode([Words.ping], into: &output)
            return 1
        }
        // Read a key. PING would not be enough: a server replies to PING even if the server has left the cluster or no
        // longer owns the slot.
        RequestEncoder.encode([Words.pttl, key], into: &output)
        guard asksForReport else { return 1 }
        RequestEncoder.encode(["CLUSTER", "NODES"], into: &output)
        return 2
    }

    func take(_ reply: RESPValue, skippedBytes: Int, isLast: Bool) {
        count += 1
        if let message = reply.errorMessage {
            // Ignore NOPERM: a server that denies access to the key still responds, and reports its slots.
            if !(count == 1 && message.hasPrefix("NOPERM")) { bad = bad ?? message }
        } else if count == 2 {
            if let description = ClusterSelf.description(reply) {
                report = ClusterReport(description: description, servers: ClusterSelf.servers(reply))
            } else {
                bad = bad ?? "the reply to CLUSTER NODES does not identify the server"
            }
        }
        if isLast { finished(self, bad.map { .bad($0) } ?? .good(report)) }
    }

    func fail(_ error: OriginError) {}
}
