import LarderPlatform
import LarderTestSupport

/// Sends commands directly to the nodes of a cluster, bypassing proxies and larders. The checker uses it to get the
/// true values.
///
/// Single owner: one thread at a time.
final class ClusterClient {
    struct Failure: Error, CustomStringConvertible { let description: String }

    private let cluster: RedisCluster
    private var connections: [Int: SocketClient] = [:]
    private var owners: [Int: Int] = [:]
    /// How long to wait for one node, in milliseconds.
    private let limit: Int

    init(_ cluster: RedisCluster, limit: Int = 300) {
        self.cluster = cluster
        self.limit = limit
    }

    /// Sends a command to the node of a key, and follows redirections. Ends with a reply, or when the time limit has
    /// passed.
    /// - Parameters:
    ///   - waitsFor: the number of replicas that must have the write. The second result is how many have it.
    ///   - until: the time limit, in milliseconds of the monotonic clock.
    func call(_ key: String, _ words: [String], waitsFor replicas: Int = 0, until: Int64) throws -> (
        reply: [UInt8], replicas: Int
    ) {
        let slot = ClusterSlot.of(key)
        var last = "nothing was tried"
        var isAsking = false
        var node = owners[slot] ?? slot % cluster.nodes.count
        while MonotonicClock.milliseconds() < until {
            guard let reply = try? ask(node, words, isAsking: isAsking) else {
                last = "node \(node) does not answer"
                connections[node] = nil
                owners[slot] = nil
                isAsking = false
                node = (node + 1) % cluster.nodes.count
                WorkThread.sleep(nanoseconds: 2_000_000)
                continue
            }
            guard reply.first == UInt8(ascii: "-") else {
                if !isAsking { owners[slot] = node }
                return (reply, replicas > 0 ? wait(node, replicas) : 0)
            }
            last = String(decoding: reply, as: UTF8.self)
            let parts = last.split(whereSeparator: \.isWhitespace).map(String.init)
            isAsking = parts[0] == "-ASK"
            if parts[0] == "-MOVED" || isAsking, parts.count > 2, let target = self.node(at: parts[2]) {
                node = target
                continue
            }
            WorkThread.sleep(nanoseconds: 5_000_000)
        }
        throw Failure(description: "\(words.prefix(2)): \(last)")
    }

    private func ask(_ node: Int, _ words: [String], isAsking: Bool) throws -> [UInt8] {
        let client = try connection(node)
        if isAsking { _ = try client.call(["ASKING"]) }
        return try client.call(words)
    }

    /// Returns the number of replicas that have all writes of this connection.
    private func wait(_ node: Int, _ replicas: Int) -> Int {
        guard let client = connections[node],
            let reply = try? client.call(["WAIT", "\(replicas)", "\(limit / 2)"])
        else {
            connections[node] = nil
            return 0
        }
        return RawReply.integer(reply) ?? 0
    }

    private func connection(_ node: Int) throws -> SocketClient {
        if let client = connections[node] { return client }
        let client = try cluster.servers[node].connect()
        UnixSocket.limit(client.descriptor, milliseconds: limit)
        connections[node] = client
        return client
    }

    /// Finds a node by the port that it announces, its own or a proxy's.
    private func node(at address: String) -> Int? {
        guard let port = address.split(separator: ":").last.flatMap({ Int($0) }) else { return nil }
        return cluster.node(announcing: port)
    }
}
