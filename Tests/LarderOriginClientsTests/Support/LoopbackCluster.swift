import LarderOriginClients
import LarderPlatform
import LarderTestSupport

/// Some `redis-server` processes of one cluster, on ports of the loopback device. The primaries share the slots evenly.
final class LoopbackCluster {
    final class Node {
        let port: UInt16
        let process: ChildProcess
        let control: SocketClient
        let id: String

        init(_ directory: String) throws {
            port = try LoopbackCluster.freePort()
            let bus = try LoopbackCluster.freePort()
            let socket = "\(directory)/\(port)"
            process = try ChildProcess(
                "redis-server",
                [
                    "--port", "\(port)", "--bind", "127.0.0.1", "--unixsocket", socket, "--save", "", "--dir",
                    directory,
                    "--appendonly", "no", "--cluster-enabled", "yes", "--cluster-config-file", "\(port).conf",
                    "--cluster-port", "\(bus)", "--cluster-node-timeout", "1000", "--repl-diskless-sync-delay", "0",
                ])
            var client: SocketClient?
            var tries = 0
            while client == nil {
                client = try? SocketClient(socket)
                tries += 1
                guard tries < 1_000_000 else { throw ChildProcess.Failure(description: "redis-server does not answer") }
            }
            control = client!
            id = String(decoding: RawReply.bulk(try control.call(["CLUSTER", "MYID"])), as: UTF8.self)
            self.bus = bus
        }

        let bus: UInt16
        deinit { process.killNow() }

        func freeze() { _ = kill(process.pid, SIGSTOP) }
        func thaw() { _ = kill(process.pid, SIGCONT) }
        func info() throws -> String { try control.call("CLUSTER INFO") }
    }

    let nodes: [Node]
    private let directory: TemporaryDirectory
    private let primaries: Int

    /// The first `primaries` nodes are primaries. The other nodes are replicas, assigned to the primaries in turn.
    init(primaries: Int = 3, replicas: Int = 0) async throws {
        let directory = try TemporaryDirectory(inMemory: true)
        self.directory = directory
        self.primaries = primaries
        nodes = try (0..<(primaries + replicas)).map { _ in try Node(directory.path) }
        for index in 0..<primaries {
            let (first, last) = (16_384 * index / primaries, 16_384 * (index + 1) / primaries - 1)
            _ = try nodes[index].control.call("CLUSTER ADDSLOTSRANGE \(first) \(last)")
        }
        for node in nodes.dropFirst() {
            _ = try nodes[0].control.call("CLUSTER MEET 127.0.0.1 \(node.port) \(node.bus)")
        }
        let nodes = nodes
        try await eventually {
            try nodes.allSatisfy {
                let info = try $0.info()
                return info.contains("cluster_known_nodes:\(nodes.count)") && info.contains("cluster_state:ok")
            }
        }
        for index in primaries..<nodes.count {
            _ = try nodes[index].control.call("CLUSTER REPLICATE \(nodes[index % primaries].id)")
        }
        try await eventually {
            try nodes[primaries...].allSatisfy {
                try $0.control.call("INFO replication").contains("master_link_status:up")
            }
        }
        try await eventually {
            // Every node knows the role of every other.
            try nodes.allSatisfy { node in
                let lines = String(decoding: RawReply.bulk(try node.control.call(["CLUSTER", "NODES"])), as: UTF8.self)
                return lines.split(separator: "\n").count { $0.contains("slave") } == nodes.count - primaries
            }
        }
    }

    deinit { for node in nodes { node.process.killNow() } }

    var address: OriginAddress {
        get throws { try address(of: Array(nodes.indices)) }
    }

    func address(of indices: [Int]) throws -> OriginAddress {
        try OriginAddress("redis+cluster://" + indices.map { "127.0.0.1:\(nodes[$0].port)" }.joined(separator: ","))
    }

    /// The primary that a slot belonged to at the start.
    func owner(ofSlot slot: Int) -> Node {
        nodes.prefix(primaries).enumerated().last { 16_384 * $0.offset / primaries <= slot }!.element
    }

    func slot(of key: String) throws -> Int {
        // In Swift, a line end is one character.
        Int(try nodes[0].control.call("CLUSTER KEYSLOT \(key)").dropFirst().dropLast()) ?? -1
    }

    /// Moves a slot with its keys.
    func move(slot: Int, from: Node, to: Node) throws {
        try beginMoving(slot: slot, from: from, to: to)
        try finishMoving(slot: slot, from: from, to: to)
    }

    func beginMoving(slot: Int, from: Node, to: Node) throws {
        _ = try to.control.call("CLUSTER SETSLOT \(slot) IMPORTING \(from.id)")
        _ = try from.control.call("CLUSTER SETSLOT \(slot) MIGRATING \(to.id)")
    }

    func finishMoving(slot: Int, from: Node, to: Node) throws {
        let reply = try from.control.call(["CLUSTER", "GETKEYSINSLOT", "\(slot)", "1000"])
        let keys = RawReply.bulks(reply).map { String(decoding: $0, as: UTF8.self) }
        if !keys.isEmpty {
            _ = try from.control.call(["MIGRATE", "127.0.0.1", "\(to.port)", "", "0", "5000", "KEYS"] + keys)
        }
        for node in [to, from] { _ = try node.control.call("CLUSTER SETSLOT \(slot) NODE \(to.id)") }
    }

    /// A port that was free a moment ago.
    static func freePort() throws -> UInt16 {
        let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        defer { close(descriptor) }
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let status = withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(descriptor, $0, length) == 0 ? getsockname(descriptor, $0, &length) : -1
            }
        }
        guard status == 0 else { throw ChildProcess.Failure(description: "no free port") }
        return UInt16(bigEndian: address.sin_port)
    }
}
