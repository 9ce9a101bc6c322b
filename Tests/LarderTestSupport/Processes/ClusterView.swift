/// The cluster as one of its nodes sees it: the reply to `CLUSTER NODES`.
package struct ClusterView: Sendable {
    package struct Node: Sendable {
        package var id: String
        /// The port that the node announces to clients.
        package var port: Int
        package var flags: Set<String>
        /// The ID of the primary, for a replica.
        package var primary: String?
        package var epoch: Int
        package var slots: [ClosedRange<Int>]

        package var isPrimary: Bool { flags.contains("master") }
        package var hasFailed: Bool { flags.contains("fail") || flags.contains("fail?") }
        package func owns(_ slot: Int) -> Bool { slots.contains { $0.contains(slot) } }
    }

    package var nodes: [Node]

    package init(_ text: String) {
        nodes = text.split(separator: "\n").compactMap { line in
            let words = line.split(separator: " ").map(String.init)
            guard words.count >= 8 else { return nil }
            let address = words[1].prefix { $0 != "@" }
            return Node(
                id: words[0], port: address.split(separator: ":").last.flatMap { Int($0) } ?? 0,
                flags: Set(words[2].split(separator: ",").map(String.init)), primary: words[3] == "-" ? nil : words[3],
                epoch: Int(words[6]) ?? 0, slots: words[8...].compactMap(Self.range))
        }
    }

    /// The node that sent the reply.
    package var own: Node? { nodes.first { $0.flags.contains("myself") } }

    /// The slots of each owner, by the ID of the owner. Nodes that agree on the owners have equal values.
    package var owners: [String: [ClosedRange<Int>]] {
        Dictionary(nodes.filter { !$0.slots.isEmpty }.map { ($0.id, $0.slots) }) { $0 + $1 }
    }

    /// Parses `5` or `5-9`; nil for slots that are being moved, which are in brackets.
    private static func range(_ word: String) -> ClosedRange<Int>? {
        let bounds = word.split(separator: "-").map { Int($0) }
        guard let first = bounds.first ?? nil, let last = bounds.last ?? nil, first <= last else { return nil }
        return first...last
    }
}

/// Computes the slots of keys in a cluster.
package enum ClusterSlot {
    package static let count = 16_384

    /// Returns the slot of a key. If the first braces in the key contain text, the slot is computed from that text,
    /// otherwise from the whole key.
    package static func of(_ key: String) -> Int {
        var bytes = Array(key.utf8)[...]
        if let open = bytes.firstIndex(of: UInt8(ascii: "{")),
            let close = bytes[(open + 1)...].firstIndex(of: UInt8(ascii: "}")), close > open + 1
        {
            bytes = bytes[(open + 1)..<close]
        }
        // CRC-16/XMODEM, as specified for Redis Cluster.
        var sum: UInt16 = 0
        for byte in bytes {
            sum ^= UInt16(byte) << 8
            for _ in 0..<8 { sum = sum & 0x8000 == 0 ? sum << 1 : sum << 1 ^ 0x1021 }
        }
        return Int(sum) % count
    }
}
