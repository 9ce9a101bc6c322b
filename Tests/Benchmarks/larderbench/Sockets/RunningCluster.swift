import LarderOriginClients
import LarderRESP

/// Three redis-servers that form a cluster on 127.0.0.1, without replicas and persistence. Deinitialization stops it.
final class RunningCluster {
    static let nodeCount = 3

    let nodes: [RunningServer]
    /// The address of the cluster, as an argument for `ORIGIN`.
    let url: String
    /// The keys of each node, out of the keys from 0 to ``Load/keyCount``.
    let parts: [LoadGenerator.Part]

    init(_ options: BenchOptions, _ tree: TemporaryTree) throws(BenchError) {
        var nodes: [RunningServer] = []
        var ports: [Int] = []
        while nodes.count < Self.nodeCount {
            let (node, port) = try Self.start(options, try tree.makeDirectory("node-\(nodes.count)"))
            nodes.append(node)
            ports.append(port)
        }
        (self.nodes, url) = (nodes, "redis+cluster://" + ports.map { "127.0.0.1:\($0)" }.joined(separator: ","))
        var keys: [[Int]] = Array(repeating: [], count: nodes.count)
        for key in 0..<Load.keyCount { keys[Self.node(ofSlot: HashSlot.of(Keys.bytes(key)))].append(key) }
        parts = zip(nodes, keys).map { LoadGenerator.Part(socket: $0.socket, keys: $1) }
        try join(ports)
    }

    private static func node(ofSlot slot: Int) -> Int { slot * nodeCount / HashSlot.count }

    /// Tries several ports, because other processes may use some of them.
    private static func start(
        _ options: BenchOptions, _ directory: String
    ) throws(BenchError) -> (RunningServer, port: Int) {
        var triesLeft = 20
        while true {
            // For communication with each other, the nodes use the port number plus 10,000.
            let port = Int.random(in: 10_000..<22_000)
            do throws(BenchError) {
                return (try RunningServer(.clusterNode(port: port), options, directory: directory), port)
            } catch {
                triesLeft -= 1
                guard triesLeft > 0 else { throw error }
            }
        }
    }

    private func join(_ ports: [Int]) throws(BenchError) {
        let slots = HashSlot.count
        for (index, node) in nodes.enumerated() {
            let own = (0..<slots).filter { Self.node(ofSlot: $0) == index }
            try Self.order(node, ["CLUSTER", "SET-CONFIG-EPOCH", "\(index + 1)"])
            try Self.order(node, ["CLUSTER", "ADDSLOTSRANGE", "\(own.first ?? 0)", "\(own.last ?? 0)"])
        }
        for port in ports { try Self.order(nodes[0], ["CLUSTER", "MEET", "127.0.0.1", "\(port)"]) }
        let end = Clocks.monotonic() + 60
        for node in nodes {
            while try !Self.isReady(node) {
                try Interruption.check()
                guard Clocks.monotonic() < end else { throw BenchError("the cluster does not serve after 60 s") }
                Clocks.sleep(0.02)
            }
        }
    }

    private static func order(_ node: RunningServer, _ words: [String]) throws(BenchError) {
        let answer = try SocketClient(path: node.socket).ask(words)
        guard answer == .simpleString("OK") else { throw BenchError("\(words[1]) is answered with \(answer)") }
    }

    private static func isReady(_ node: RunningServer) throws(BenchError) -> Bool {
        guard case .bulk(let bytes) = try SocketClient(path: node.socket).ask(["CLUSTER", "INFO"]) else { return false }
        let text = String(decoding: bytes, as: UTF8.self)
        return text.contains("cluster_state:ok") && text.contains("cluster_known_nodes:\(nodeCount)")
    }

    /// Stores every key once.
    func fill(valueBytes: Int) throws(BenchError) {
        for part in parts {
            var load = Load.fill(part.keys?.count ?? 0, valueBytes: valueBytes)
            load.clients = 1
            try LoadGenerator(load, parts: [part], dialect: .resp).run().check()
        }
    }

    func stopAndRemove() {
        for node in nodes { node.stopAndRemove() }
    }
}
