import LarderRESP

/// The servers that own the hash slots of a cluster, as reported by one of the servers.
struct SlotMap {
    struct Range {
        let slots: ClosedRange<Int>
        let primary: OriginEndpoint
        let replicas: [OriginEndpoint]
    }

    private(set) var ranges: [Range] = []

    /// - Parameters:
    ///   - reply: the reply to CLUSTER SLOTS.
    ///   - asked: the address of the server that sent the reply. An empty host in the reply means this server's host.
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
        // A null or empty host means the host of the server that replied; "?" means that the host is unknown.
        guard let host = parts[0].isNull ? "" : parts[0].string, host != "?" else { return nil }
        return endpoint(host, number, asked: asked)
    }

    /// Returns the address of a server of a cluster; an empty host means the host of the server that replied.
    fileprivate static func endpoint(_ host: String, _ port: UInt16, asked: OriginEndpoint) -> OriginEndpoint? {
        if !host.isEmpty { return .tcp(host: host, port: port) }
        guard case .tcp(let host, _) = asked else { return nil }
        return .tcp(host: host, port: port)
    }
}

/// A redirection error of a cluster: `MOVED slot host:port` or `ASK slot host:port`.
struct Redirection {
    let isAsk: Bool
    let slot: Int
    let endpoint: OriginEndpoint

    /// Parses an error reply. Returns nil if it is not a redirection.
    init?(_ message: String, asked: OriginEndpoint) {
        let words = message.split(separator: " ")
        guard words.count >= 3, words[0] == "MOVED" || words[0] == "ASK", let slot = Int(words[1]),
            (0..<HashSlot.count).contains(slot), let colon = words[2].lastIndex(of: ":"),
            let port = UInt16(words[2][words[2].index(after: colon)...]), port > 0,
            let endpoint = SlotMap.endpoint(String(words[2][..<colon]), port, asked: asked)
        else { return nil }
        isAsk = words[0] == "ASK"
        self.slot = slot
        self.endpoint = endpoint
    }
}

/// Parses the line of CLUSTER NODES that describes the replying server itself (`myself`): its role, its slots, and the
/// slots that are migrating.
enum ClusterSelf {
    /// - Returns: the role and the slots as text, for comparisons; nil if the reply does not contain the line.
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

    /// Returns the slots whose ownership or migration differs between two descriptions of a server.
    /// - Returns: nil if one of the descriptions is malformed, or describes a replica.
    static func slots(between old: String, and new: String) -> Set<Int>? {
        guard let old = claims(old), let new = claims(new) else { return nil }
        return old.owned.symmetricDifference(new.owned).union(
            old.moving.symmetricDifference(new.moving).compactMap { Int($0.dropFirst().prefix { $0 != "-" }) })
    }

    /// Parses a description of a server: the slots that it owns, and the marks of migrating slots, such as `[93->-id]`.
    /// - Returns: nil for a replica or malformed text.
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

    /// Returns the number of servers in a reply to CLUSTER NODES, which has one line for each server.
    static func servers(_ reply: RESPValue) -> Int { reply.bytes?.count { $0 == 10 } ?? 0 }
}

/// Computes the hash slot of a key in a Redis cluster: CRC-16 (XMODEM) of the key or its hash tag `{…}`.
package enum HashSlot {
    package static let count = 16_384

    package static func of(_ key: [UInt8]) -> Int {
        if let open = key.firstIndex(of: UInt8(ascii: "{")),
            let close = key[(open + 1)...].firstIndex(of: UInt8(ascii: "}")), close > open + 1
        {
            return Int(crc16(key[(open + 1)..<close])) % count
        }
        return Int(crc16(key[...])) % count
    }

    private static let table: [UInt16] = (0..<256).map { index in
        var value = UInt16(index) << 8
        for _ in 0..<8 { value = value & 0x8000 != 0 ? (value << 1) ^ 0x1021 : value << 1 }
        return value
    }

    static func crc16(_ bytes: ArraySlice<UInt8>) -> UInt16 {
        var crc: UInt16 = 0
        for byte in bytes { crc = (crc << 8) ^ table[Int(UInt8(truncatingIfNeeded: crc >> 8) ^ byte)] }
        return crc
    }
}
