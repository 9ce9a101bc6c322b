import LarderPlatform
import LarderRESP
import LarderWire

/// What the client knows about the cluster. Used on the loop's thread only.
final class ClusterState {
    /// The server that owns each slot; nil if no server owns it.
    var owners: [RedisServer?] = Array(repeating: nil, count: HashSlot.count)
    /// Whether a slot map has been received.
    var isKnown = false
    /// The tasks that wait for the first slot map.
    var unrouted: [RedisTask] = []
    /// Whether a request for a slot map is pending.
    var isAsking = false
    /// Whether a request for a slot map is scheduled to be sent soon.
    var isWanted = false
    var askedAt: Int64 = 0
    /// A counter for sending requests to the servers in turn.
    var turn = 0
    var timer: LoopTimer?
    /// Nil if reads are not sent to replicas.
    var replicas: ReplicaReads?
}

extension RedisClient {
    /// The intervals between requests for a slot map, in milliseconds: normally, and while a server is down.
    private static let mapInterval = 5_000
    private static let mapIntervalInTrouble = 250
    /// The shortest time between two requests for a slot map, in milliseconds.
    private static let mapRest = 50
    /// How long the connection to a server that owns no slots is kept after its last use.
    private static let keptNanoseconds: Int64 = 5_000_000_000
    /// The number of redirections that are followed at once. A task with more of them rests before it is sent again:
    /// while a slot moves, its old and its new owner may redirect to each other until they have exchanged news.
    private static let redirectionsMax = 8

    func startCluster() {
        let cluster = ClusterState()
        self.cluster = cluster
        cluster.timer = LoopTimer(loop) { [weak self] in self?.askForMap() }
        if settings.secondReadAfter != nil { cluster.replicas = ReplicaReads(loop, settings, owner: self) }
        for endpoint in address.endpoints { _ = server(at: endpoint) }
    }

    func stopCluster() {
        cluster?.replicas?.close()
        cluster?.replicas = nil
        cluster?.timer?.stop()
        cluster?.timer = nil
        cluster?.unrouted = []
        cluster?.owners = []
    }

    // MARK: Servers

    func serverIsUp(_ server: RedisServer) {
        publish()
        if let cluster, !cluster.isKnown { askForMap() }
    }

    func serverIsDown(_ server: RedisServer, _ error: OriginError) {
        publish()
        guard let cluster else { return }
        requestMap()
        guard !cluster.isKnown, servers.values.allSatisfy(\.isDown) else { return }
        // All servers are down, so no slot map can be received. Fail the tasks that wait for it.
        let tasks = cluster.unrouted
        cluster.unrouted = []
        for task in tasks { task.answer(error) }
    }

    func serverOwnsOther(_ server: RedisServer) {
        publish()
        requestMap()
    }

    // MARK: The map

    /// Schedules a request for a slot map, at least ``mapRest`` after the previous request.
    func requestMap() {
        guard let cluster, !cluster.isWanted, !isClosed else { return }
        cluster.isWanted = true
        let since = (MonotonicClock.nanoseconds() - cluster.askedAt) / 1_000_000
        cluster.timer?.start(milliseconds: max(0, Self.mapRest - Int(min(since, 1_000))))
    }

    private func askForMap() {
        guard let cluster, !isClosed else { return }
        cluster.isWanted = false
        cluster.timer?.start(milliseconds: isInTrouble ? Self.mapIntervalInTrouble : Self.mapInterval)
        guard !cluster.isAsking else { return }
        cluster.askedAt = MonotonicClock.nanoseconds()
        guard let server = serverToAsk() else {
            // No server is connected. Connect to the configured addresses, whose servers may be available again.
            for endpoint in address.endpoints { _ = self.server(at: endpoint) }
            return
        }
        cluster.isAsking = true
        server.send([["CLUSTER", "SLOTS"].map { Array($0.utf8) }]) { [weak self, cluster] result in
            cluster.isAsking = false
            guard let self, !self.isClosed else { return }
            self.receivedMap(result.map { $0[0] }, from: server)
        }
    }

    private var isInTrouble: Bool {
        guard let cluster, cluster.isKnown else { return true }
        return servers.values.contains { !$0.isTrusted }
    }

    /// Returns a server for a request that any server can answer: trusted servers in turn, or else connected servers.
    private func serverToAsk() -> RedisServer? {
        guard let cluster else { return nil }
        let sorted = servers.values.filter(\.isUp).sorted { $0.part < $1.part }
        let believed = sorted.filter(\.isTrusted)
        let candidates = believed.isEmpty ? sorted : believed
        guard !candidates.isEmpty else { return nil }
        cluster.turn &+= 1
        return candidates[Int(cluster.turn.magnitude % UInt(candidates.count))]
    }

    private func receivedMap(_ result: Result<RESPValue, OriginError>, from server: RedisServer) {
        guard case .success(let reply) = result else { return requestMap() }
        if let map = SlotMap(reply, asked: server.endpoint), !map.ranges.isEmpty { return apply(map) }
        let error = OriginError.unsuitable(
            "\(server.endpoint): "
                + (reply.errorMessage.map { "CLUSTER SLOTS: \($0)" } ?? "no server of the cluster owns a slot"))
        guard let cluster, !cluster.isKnown else { return }
        let tasks = cluster.unrouted
        cluster.unrouted = []
        for task in tasks { task.answer(error) }
    }

    private func apply(_ map: SlotMap) {
        guard let cluster else { return }
        var owners: [RedisServer?] = Array(repeating: nil, count: HashSlot.count)
        for range in map.ranges {
            let server = server(at: range.primary)
            for slot in range.slots { owners[slot] = server }
        }
        var changed: [ObjectIdentifier: (server: RedisServer, slots: [Int])] = [:]
        for slot in 0..<HashSlot.count {
            guard let old = cluster.owners[slot], old !== owners[slot] else { continue }
            changed[ObjectIdentifier(old), default: (old, [])].slots.append(slot)
        }
        cluster.owners = owners
        cluster.isKnown = true
        for (server, slots) in changed.values {
            server.endEpochs(ofSlots: slots, "\(server.endpoint): slots have a new owner (\(slots.count))")
        }
        setHeartbeatKeys()
        retireUnused()
        cluster.replicas?.use(map)
        publish()
        let tasks = cluster.unrouted
        cluster.unrouted = []
        for task in tasks { route(task) }
    }

    /// Chooses a heartbeat key for each server, such that the server owns the key's slot.
    private func setHeartbeatKeys() {
        guard let cluster else { return }
        var missing = Set(cluster.owners.compactMap { $0 }.map(ObjectIdentifier.init))
        for server in servers.values {
            if let key = server.heartbeatKey, cluster.owners[HashSlot.of(key)] === server {
                missing.remove(ObjectIdentifier(server))
            }
        }
        var number = 0
        while !missing.isEmpty, number < HashSlot.count * 16 {
            let key = Array("larder:heartbeat:\(number)".utf8)
            if let server = cluster.owners[HashSlot.of(key)], missing.remove(ObjectIdentifier(server)) != nil {
                server.heartbeatKey = key
            }
            number += 1
        }
    }

    private func retireUnused() {
        guard let cluster else { return }
        let used = Set(cluster.owners.compactMap { $0 }.map(ObjectIdentifier.init))
        let now = MonotonicClock.nanoseconds()
        for server in Array(servers.values) where !used.contains(ObjectIdentifier(server)) {
            if server.tasksUnderWay == 0, now - server.usedAt > Self.keptNanoseconds { retire(server) }
        }
    }

    // MARK: Routes

    func routeInCluster(_ task: RedisTask) {
        guard let cluster else { return }
        guard cluster.isKnown else {
            if !servers.isEmpty, servers.values.allSatisfy(\.isDown) {
                return task.answer(servers.values.compactMap(\.lastError).first ?? .unavailable("no server answers"))
            }
            cluster.unrouted.append(task)
            return requestMap()
        }
        guard let slot = task.slot else {
            guard let server = serverToAsk() else { return task.answer(.unavailable("no server answers")) }
            return server.submit(task)
        }
        if let server = cluster.owners[slot] { return server.submit(task) }
        requestMap()
        let error = OriginError.unavailable("no server owns the slot \(slot)")
        if task.rests >= Self.unownedRests || !rest(task, because: error) { task.answer(error) }
    }

    /// Sends a task again, to the server in the redirection. After MOVED, also records the new owner of the slot.
    func redirect(_ task: RedisTask, _ redirection: Redirection, _ message: String, from server: RedisServer) {
        report.redirections += 1
        guard let cluster else {
            return task.answer(
                .unsuitable("the server is part of a cluster (\(message)): use redis+cluster:// instead of redis://"))
        }
        task.redirections += 1
        guard let target = self.server(at: redirection.endpoint) else {
            return task.answer(.unavailable("there are more than \(OriginParts.most) servers"))
        }
        requestMap()
        guard task.redirections <= Self.redirectionsMax else {
            let error = OriginError.unavailable("too many redirections of the key: \(message)")
            if !rest(task, because: error) { task.answer(error) }
            return
        }
        task.reset()
        task.isAsking = redirection.isAsk
        if !redirection.isAsk, cluster.owners[redirection.slot] !== target {
            cluster.owners[redirection.slot]?.endEpochs(
                ofSlots: [redirection.slot], "\(server.endpoint): \(message)")
            cluster.owners[redirection.slot] = target
        }
        target.submit(task)
    }
}
