import LarderPlatform

extension RedisCluster {
    // MARK: Stopping and restarting nodes

    /// Sends SIGKILL to a node, and waits until its process has ended.
    package func kill(_ node: Int) { servers[node].kill() }

    /// Sends SIGSTOP to a node, which then accepts requests and does not reply.
    package func freeze(_ node: Int) { servers[node].freeze() }

    /// Sends SIGCONT to a node. For a moment, a primary that was replaced by a replica still acts as the primary: see
    /// ``waitUntilReady()``.
    package func thaw(_ node: Int) { servers[node].thaw() }

    /// Restarts a killed node, at its port and with its files. The node announces the same port as before.
    package func restart(_ node: Int) throws {
        let port = announced.value[node]
        try servers[node].restart(port == servers[node].port ? [] : ["--cluster-announce-port", "\(port)"])
    }

    /// Kills all nodes and restarts them. Their data is lost unless the cluster is durable.
    package func restartAll() throws {
        for node in nodes { kill(node) }
        for node in nodes { try restart(node) }
    }

    // MARK: Waiting

    /// Waits until all running nodes agree on the owners of the slots, no owner has failed, and all replicas are in
    /// sync.
    package func waitUntilReady() throws {
        try wait("the cluster is ready") {
            var owners: [[String: [ClosedRange<Int>]]] = []
            for node in upNodes {
                let view = try view(node)
                guard view.nodes.count == nodes.count,
                    !view.nodes.contains(where: { $0.hasFailed && !$0.slots.isEmpty }),
                    view.owners.values.flatMap({ $0 }).map(\.count).reduce(0, +) == ClusterSlot.count,
                    try text(node, ["CLUSTER", "INFO"]).contains("cluster_state:ok")
                else { return false }
                if view.own?.isPrimary == false {
                    let status = try text(node, ["INFO", "replication"])
                    guard status.contains("master_link_status:up") else { return false }
                }
                owners.append(view.owners)
            }
            return !owners.isEmpty && owners.allSatisfy { $0 == owners[0] }
        }
    }

    /// Waits until a node other than `old` serves a slot, and all running nodes agree on that.
    /// - Returns: the new node.
    @discardableResult
    package func waitForFailover(ofSlot slot: Int, from old: Int) throws -> Int {
        try wait("another node than \(old) serves slot \(slot)") {
            try upNodes.filter { $0 != old }.allSatisfy { node in
                guard let owner = try view(node).nodes.first(where: { $0.owns(slot) }) else { return false }
                return owner.id != ids[old] && owner.isPrimary
            }
        }
        return try primary(ofSlot: slot)
    }

    /// Waits until a node knows that it is a replica, after ``thaw(_:)`` or ``restart(_:)``.
    package func waitUntilReplica(_ node: Int) throws {
        try wait("node \(node) is a replica") { try view(node).own?.isPrimary == false }
    }

    /// Polls until the condition holds. A node that does not reply yet is not an error.
    func wait(_ what: String, _ isSo: () throws -> Bool) throws {
        let end = MonotonicClock.milliseconds() + 120_000
        while (try? isSo()) != true {
            guard MonotonicClock.milliseconds() < end else {
                let views = upNodes.map { (try? text($0, ["CLUSTER", "NODES"])) ?? "no answer" }
                throw ChildProcess.Failure(
                    description: "not within two minutes: \(what)\n\(views.joined(separator: "\n"))")
            }
            WorkThread.sleep(nanoseconds: 2_000_000)
        }
    }

    // MARK: Slots

    /// Stages of a slot's move at which a test may act.
    package enum MoveStage: Sendable {
        /// Both nodes know of the move, and all keys are still at the old node.
        case begun
        /// Half of the keys are at the new node. Requests for these get ASK, requests for keys of both halves TRYAGAIN.
        case halfway
        /// All keys are at the new node, but the old one still owns the slot.
        case emptied
    }

    /// Moves a slot with its keys to another primary, while clients continue.
    /// - Parameter pause: called at each stage.
    package func moveSlot(_ slot: Int, to target: Int, pause: (MoveStage) throws -> Void = { _ in }) throws {
        let source = try primary(ofSlot: slot)
        guard source != target else { return }
        try ok(target, ["CLUSTER", "SETSLOT", "\(slot)", "IMPORTING", ids[source]])
        try ok(source, ["CLUSTER", "SETSLOT", "\(slot)", "MIGRATING", ids[target]])
        try pause(.begun)
        let half = (RawReply.integer(try call(source, ["CLUSTER", "COUNTKEYSINSLOT", "\(slot)"])) ?? 0) / 2
        try migrate(slot, from: source, to: target, count: half)
        try pause(.halfway)
        try migrate(slot, from: source, to: target, count: .max)
        try pause(.emptied)
        // Notify the new owner first. Otherwise the old owner redirects to a node that does not know of the move.
        for node in [target, source] { try ok(node, ["CLUSTER", "SETSLOT", "\(slot)", "NODE", ids[target]]) }
        for node in upNodes where node != target && node != source {
            guard try view(node).own?.isPrimary == true else { continue }
            try ok(node, ["CLUSTER", "SETSLOT", "\(slot)", "NODE", ids[target]])
        }
    }

    private func migrate(_ slot: Int, from source: Int, to target: Int, count: Int) throws {
        var left = count
        while left > 0 {
            let reply = try call(source, ["CLUSTER", "GETKEYSINSLOT", "\(slot)", "\(min(left, 100))"])
            let keys = RawReply.bulks(reply)
            guard !keys.isEmpty else { return }
            left -= keys.count
            let words = ["MIGRATE", "127.0.0.1", "\(servers[target].port)", "", "0", "5000", "KEYS"]
            let answer = try servers[source].connect().call(encodeRequest(words.map { Array($0.utf8) } + keys))
            // NOKEY: the key was removed in the meantime.
            guard answer.starts(with: "+OK".utf8) || answer.starts(with: "+NOKEY".utf8) else {
                throw ChildProcess.Failure(description: "MIGRATE: \(String(decoding: answer, as: UTF8.self))")
            }
        }
    }

    // MARK: Addresses

    /// Makes nodes announce other ports than their own, such as the ports of proxies. MOVED and the slot map then lead
    /// clients to these ports. Waits until all nodes announce them.
    package func announce(ports: [Int]) throws {
        for (node, port) in zip(nodes, ports) {
            try ok(node, ["CONFIG", "SET", "cluster-announce-port", "\(port)"])
        }
        announced.value = ports
        let wanted = Dictionary(uniqueKeysWithValues: zip(ids, ports))
        try wait("all nodes announce the ports \(ports)") {
            try upNodes.allSatisfy { try view($0).nodes.allSatisfy { wanted[$0.id] == $0.port } }
        }
    }
}
