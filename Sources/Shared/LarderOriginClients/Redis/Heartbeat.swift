import LarderPlatform
import LarderRESP

/// A request that checks whether a server responds and still owns its slots. Used on the loop's thread only.
final class Heartbeat {
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

    let commands: [[[UInt8]]]
    let sentAt = MonotonicClock.nanoseconds()

    /// - Parameter key: the key to read, which is in one of the server's slots; nil for a single server.
    init(key: [UInt8]?, asksForReport: Bool) {
        // Read a key. PING would not be enough: a server replies to PING even if the server has left the cluster or no
        // longer owns the slot.
        let report = asksForReport ? [["CLUSTER", "NODES"].map { Array($0.utf8) }] : []
        commands = key.map { [[Words.pttl, $0]] + report } ?? [[Words.ping]]
    }

    /// Whether a reply can belong to the command with this index.
    func accepts(_ index: Int, _ reply: RESPValue) -> Bool {
        if index > 0 { return reply.string != nil }
        return commands[0][0] == Words.ping ? reply.string == "PONG" : reply.int != nil
    }

    func answer(_ replies: [RESPValue]) -> Answer {
        // Ignore NOPERM: a server that denies access to the key still responds, and reports its slots.
        if let message = replies[0].errorMessage, !message.hasPrefix("NOPERM") { return .bad(message) }
        guard replies.count > 1 else { return .good(nil) }
        if let message = replies[1].errorMessage { return .bad(message) }
        guard let description = ClusterSelf.description(replies[1]) else {
            return .bad("the reply to CLUSTER NODES does not identify the server")
        }
        return .good(ClusterReport(description: description, servers: ClusterSelf.servers(replies[1])))
    }
}
