import RESP

/// Who owns the slots of a cluster, as one of its servers says.
struct SlotMap {
    struct Range {
        let slots: ClosedRange<Int>
        let primary: OriginEndpoint
        let replicas: [OriginEndpoint]
    }

    private(set) var ranges: [Range] = []

    /// - Parameters:
    ///   - reply: of CLUSTER SLOTS.
    ///   - asked: the host of the server that said it, where it does not know its own.
    init?(_ reply: RESPValue, asked: OriginEndpoint) {
        guard case .array(let entries) = reply else { return nil }
        for entry in entries {
            guard let parts = entry.elements, parts.count >= 3, let first = parts[0].int, let last = parts[1].int,
                first >= 0, first <= last, last < HashSlot.count
            else { return nil }
            let servers = parts[2...].compactMap { Self.endpoint($0, asked: asked) }
            guard let primary = servers.first else { continue }
            ranges.append(
                Range(slots: Int(first)...Int(last), primary: primary, replicas: Array(servers.dropFirst())))
        }
    }

    private static func endpoint(_ value: RESPValue, asked: OriginEndpoint) -> OriginEndpoint? {
        guard let parts = value.elements, parts.count >= 2, let port = parts[1].int, let number = UInt16(exactly: port),
            number > 0
        else { return nil }
        // Null or empty: as the server was asked. "?": it is not known.
        guard let host = parts[0].isNull ? "" : parts[0].string, host != "?" else { return nil }
        return host.isEmpty ? same(asked, number) : .tcp(host: host, port: number)
    }

    private static func same(_ asked: OriginEndpoint, _ port: UInt16) -> OriginEndpoint? {
        guard case .tcp(let host, _) = asked else { return nil }
        return .tcp(host: host, port: port)
    }
}

/// `MOVED slot host:port` and `ASK slot host:port`.
struct Redirection {
    let isAsk: Bool
    let slot: Int
    let endpoint: OriginEndpoint

    /// Nil for other errors.
    init?(_ message: String, asked: OriginEndpoint) {
        let words = message.split(separator: " ")
        guard words.count >= 3, words[0] == "MOVED" || words[0] == "ASK", let slot = Int(words[1]),
            (0..<HashSlot.count).contains(slot), let colon = words[2].lastIndex(of: ":"),
            let port = UInt16(words[2][words[2].index(after: colon)...]), port > 0
        else { return nil }
        isAsk = words[0] == "ASK"
        self.slot = slot
        let host = words[2][..<colon]
        if host.isEmpty, case .tcp(let known, _) = asked {
            endpoint = .tcp(host: known, port: port)
        } else {
            guard !host.isEmpty else { return nil }
            endpoint = .tcp(host: String(host), port: port)
        }
    }
}

/// What a server of a cluster says of itself: CLUSTER NODES has the line `myself`, with its role, its slots, and which of
/// them move.
enum ClusterSelf {
    /// - Returns: role and slots as text, to be compared; nil if the reply has none.
    static func description(_ reply: RESPValue) -> String? {
        guard let text = reply.string else { return nil }
        for line in text.split(separator: "\n") {
            let words = line.split(separator: " ")
            guard words.count >= 8, words[2].contains("myself") else { continue }
            let isPrimary = words[2].contains("master")
            return (isPrimary ? "primary " : "replica ") + words[8...].joined(separator: " ")
        }
        return nil
    }

    /// How many servers the reply has.
    static func servers(_ reply: RESPValue) -> Int { reply.bytes?.count { $0 == 10 } ?? 0 }
}
