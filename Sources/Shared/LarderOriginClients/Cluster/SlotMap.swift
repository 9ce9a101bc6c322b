import LarderRESP

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

    /// The slots by which two descriptions differ: those that came, went, or began or ceased to move.
    /// - Returns: nil if they differ by more than slots.
    static func slots(between old: String, and new: String) -> Set<Int>? {
        guard let old = claims(old), let new = claims(new) else { return nil }
        return old.owned.symmetricDifference(new.owned).union(
            old.moving.symmetricDifference(new.moving).compactMap { Int($0.dropFirst().prefix { $0 != "-" }) })
    }

    /// What a primary's description says: its slots, and the marks of those that move, such as `[93->-id]`. Nil for that of a
    /// replica, and for one that cannot be read.
    private static func claims(_ description: String) -> (owned: Set<Int>, moving: Set<Substring>)? {
        let words = description.split(separator: " ")
        guard words.first == "primary" else { return nil }
        var owned: Set<Int> = []
        var moving: Set<Substring> = []
        for word in words.dropFirst() {
            if word.hasPrefix("[") {
                guard let slot = Int(word.dropFirst().prefix { $0 != "-" }), (0..<HashSlot.count).contains(slot) else {
                    return nil
                }
                moving.insert(word)
                continue
            }
            let ends = word.split(separator: "-", omittingEmptySubsequences: false).map { Int($0) }
            guard let first = ends.first ?? nil, let last = ends.last ?? nil, ends.count <= 2, first <= last,
                first >= 0, last < HashSlot.count
            else { return nil }
            owned.formUnion(first...last)
        }
        return (owned, moving)
    }

    /// How many servers the reply has.
    static func servers(_ reply: RESPValue) -> Int { reply.bytes?.count { $0 == 10 } ?? 0 }
}
