import LarderPlatform

/// A cluster of `redis-server` or `valkey-server` on 127.0.0.1, in directories of its own. Its processes are killed
/// when this object is released.
///
/// Nodes are numbered from 0: first the primaries, then the replicas, which are assigned to the primaries in turn.
/// Calls to a node use its Unix-domain socket, bypassing proxies and announced addresses.
///
/// Thread-safe: mutable state is requested from the nodes each time.
package final class RedisCluster: Sendable {
    /// Whether a server is available, for `.enabled(if:)`.
    package static var isAvailable: Bool { !RedisProcess.programs.isEmpty }

    package let servers: [RedisProcess]
    /// The IDs of the nodes, which are constant.
    package let ids: [String]
    /// The ports that the nodes announce.
    let announced: Guarded<[Int]>

    /// Starts a cluster, and waits until it serves.
    /// - Parameters:
    ///   - primaries: at least 1; automatic failover needs 3.
    ///   - replicas: the total number of replicas.
    ///   - settings: additional options for each node.
    ///   - isDurable: whether acknowledged writes survive SIGKILL.
    ///   - nodeTimeoutMilliseconds: how long a node may be silent before others consider a failover.
    ///   - program: the server's program.
    package init(
        primaries: Int = 3, replicas: Int = 0, settings: [String] = [], isDurable: Bool = false,
        nodeTimeoutMilliseconds: Int = 1000, program: String? = nil
    ) throws {
        let program = program ?? RedisProcess.programs.first ?? "redis-server"
        let settings =
            [
                "--cluster-enabled", "yes", "--cluster-node-timeout", "\(nodeTimeoutMilliseconds)",
                "--cluster-replica-validity-factor", "0", "--cluster-migration-barrier", "100",
                "--cluster-announce-ip", "127.0.0.1", "--repl-diskless-sync-delay", "0", "--repl-ping-replica-period",
                "1",
                // Connections between nodes use this address, so that a proxy can distinguish them from clients.
                "--bind-source-addr", Self.sourceAddress,
                // Protected mode would refuse the nodes' connections, which are not from 127.0.0.1. Other machines
                // cannot connect anyway, because the nodes listen only at 127.0.0.1.
                "--protected-mode", "no",
            ] + (isDurable ? ["--appendonly", "yes", "--appendfsync", "no"] : []) + settings
        servers = try (0..<(primaries + replicas)).map { _ in try Self.start(settings, program) }
        ids = try servers.map { try Self.text($0, ["CLUSTER", "MYID"]) }
        announced = Guarded(servers.map(\.port))
        try join(primaries: primaries)
        try waitUntilReady()
    }

    /// The source address of connections between nodes.
    package static let sourceAddress = "127.0.0.2"

    /// Starts a server, with several attempts: another process may take the port between the check and the start.
    private static func start(_ settings: [String], _ program: String) throws -> RedisProcess {
        var triesLeft = 20
        while true {
            do {
                return try RedisProcess(settings, port: LoopbackPort.freeWithClusterBus(), program: program)
            } catch {
                triesLeft -= 1
                guard triesLeft > 0 else { throw error }
            }
        }
    }

    private func join(primaries: Int) throws {
        let slots = ClusterSlot.count
        for number in nodes {
            try ok(number, ["CLUSTER", "SET-CONFIG-EPOCH", "\(number + 1)"])
            if number < primaries {
                let (first, end) = (number * slots / primaries, (number + 1) * slots / primaries)
                try ok(number, ["CLUSTER", "ADDSLOTSRANGE", "\(first)", "\(end - 1)"])
            }
        }
        // Connect the nodes only after each has its configuration epoch: a node that has met others does not accept an
        // epoch.
        for number in nodes {
            for other in nodes where other != number {
                try ok(number, ["CLUSTER", "MEET", "127.0.0.1", "\(servers[other].port)"])
            }
        }
        for number in nodes.dropFirst(primaries) {
            let primary = (number - primaries) % primaries
            // The node does not know its primary until the two nodes have met.
            try wait("node \(number) becomes a replica") {
                try call(number, ["CLUSTER", "REPLICATE", ids[primary]]).starts(with: "+OK".utf8)
            }
        }
    }

    // MARK: Addresses

    package var nodes: Range<Int> { servers.indices }

    /// The nodes' own addresses, as used in a URL.
    package var seeds: String { servers.map { "127.0.0.1:\($0.port)" }.joined(separator: ",") }
    package var url: String { "redis+cluster://\(seeds)" }

    /// Returns the node that announces a port or listens on it; nil if there is none.
    package func node(announcing port: Int) -> Int? {
        announced.value.firstIndex(of: port) ?? servers.firstIndex { $0.port == port }
    }

    // MARK: Commands

    /// Sends a command to a node, and returns the raw reply. Throws if the node is down, and after five seconds without
    /// a reply, for example from a frozen node.
    package func call(_ node: Int, _ words: [String]) throws -> [UInt8] { try Self.call(servers[node], words) }

    /// Like ``call(_:_:)-(_,[String])``, for a line of words; returns the reply as text.
    package func call(_ node: Int, _ line: String) throws -> String {
        String(decoding: try call(node, line.split(separator: " ").map(String.init)), as: UTF8.self)
    }

    /// Sends a command to the primary of a key.
    package func call(key: String, _ line: String) throws -> String { try call(primary(ofKey: key), line) }

    private static func call(_ server: RedisProcess, _ words: [String]) throws -> [UInt8] {
        guard server.isUp else { throw ChildProcess.Failure(description: "the node is down: \(words)") }
        let client = try server.connect()
        UnixSocket.limit(client.descriptor, milliseconds: 5000)
        return try client.call(words)
    }

    private static func text(_ server: RedisProcess, _ words: [String]) throws -> String {
        String(decoding: RawReply.bulk(try call(server, words)), as: UTF8.self)
    }

    func ok(_ node: Int, _ words: [String]) throws {
        let reply = try call(node, words)
        guard reply.starts(with: "+OK".utf8) else {
            throw ChildProcess.Failure(description: "\(words): \(String(decoding: reply, as: UTF8.self))")
        }
    }

    /// Returns the text of a reply that is a bulk string, such as that of `INFO`.
    package func text(_ node: Int, _ words: [String]) throws -> String { try Self.text(servers[node], words) }

    // MARK: Roles

    package func view(_ node: Int) throws -> ClusterView { ClusterView(try text(node, ["CLUSTER", "NODES"])) }

    /// The nodes that are running and not frozen.
    package var upNodes: [Int] { nodes.filter { servers[$0].isUp } }

    /// Returns the node that serves a slot: of the running nodes that claim it, the one with the highest epoch.
    package func primary(ofSlot slot: Int) throws -> Int {
        let claims = upNodes.compactMap { node -> (node: Int, epoch: Int)? in
            guard let own = try? view(node).own, own.isPrimary, own.owns(slot) else { return nil }
            return (node, own.epoch)
        }
        guard let claim = claims.max(by: { $0.epoch < $1.epoch }) else {
            throw ChildProcess.Failure(description: "no running node serves slot \(slot)")
        }
        return claim.node
    }

    package func primary(ofKey key: String) throws -> Int { try primary(ofSlot: ClusterSlot.of(key)) }

    /// Returns the running replicas of a node.
    package func replicas(of node: Int) throws -> [Int] {
        upNodes.filter { replica in (try? view(replica).own?.primary) == ids[node] }
    }

    /// Returns a key in a slot that a node serves.
    package func key(on node: Int, prefix: String = "key") throws -> String {
        guard let own = try view(node).own else { throw ChildProcess.Failure(description: "node \(node) is new") }
        var number = 0
        while !own.owns(ClusterSlot.of("\(prefix)\(number)")) {
            number += 1
            guard number < 1_000_000 else {
                throw ChildProcess.Failure(description: "node \(node) serves no slots")
            }
        }
        return "\(prefix)\(number)"
    }
}
