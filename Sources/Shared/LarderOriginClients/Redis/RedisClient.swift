import LarderPlatform
import LarderRESP
import LarderVocabulary
import LarderWire

/// The part of a ``RedisOrigin`` that runs on the loop's thread. Manages the servers and the calls, and sends each
/// key's requests to the right server.
///
/// `@unchecked Sendable`: `report` has a lock; everything else is used on the loop's thread only.
final class RedisClient: @unchecked Sendable {
    let loop: SocketLoop
    let address: OriginAddress
    private(set) var settings: RedisSettings
    let parts: OriginParts
    weak var listener: (any OriginListener)?
    let report = RedisReport()
    private(set) var isClosed = false
    /// The error because of which the origin can never be used, such as an unreadable certificate; else nil.
    private var failure: OriginError?

    var servers: [OriginEndpoint: RedisServer] = [:]
    /// The recent invalidations, for the calls that must know at their end whether their keys were invalidated
    /// meanwhile.
    var tracker = InvalidationTracker<[UInt8]>()
    /// The calls in the order of their deadlines.
    private var calls = Deque<RedisCall>()
    private var callTimer: LoopTimer?
    /// The tasks that wait for a retry, each with the time of the retry in nanoseconds of the monotonic clock.
    private var resting: [(due: Int64, task: RedisTask)] = []
    private var restTimer: LoopTimer?
    /// Whether the server has accepted MULTI before.
    private var mayHaveTransactions = false
    /// The state of the cluster; nil for a single server.
    var cluster: ClusterState?

    /// How often waiting tasks are checked, in milliseconds.
    private static let backoffStep = 10

    init(
        _ loop: SocketLoop, _ address: OriginAddress, _ settings: RedisSettings, _ parts: OriginParts,
        _ listener: (any OriginListener)?
    ) {
        (self.loop, self.address, self.settings) = (loop, address, settings)
        (self.parts, self.listener) = (parts, listener)
    }

    /// Starts the client. Call it once, on the loop.
    func start() {
        guard !isClosed else { return }
        if address.usesTLS {
            // If the certificates cannot be read, make no connection at all: an unencrypted connection is not allowed.
            do throws(TLSContext.Failure) {
                settings.tls = try TLSContext(
                    certificatesPath: address.certificatesPath, certificatePath: address.certificatePath,
                    keyPath: address.keyPath)
            } catch {
                return noteUnusable(.unsuitable("TLS: \(error)"))
            }
        }
        callTimer = LoopTimer(loop) { [weak self] in self?.endOverdueCalls() }
        restTimer = LoopTimer(loop) { [weak self] in self?.resume() }
        if address.isCluster { startCluster() } else { _ = server(at: address.endpoints[0]) }
        publish()
    }

    /// Records that the origin can never be used, and notifies the listener.
    private func noteUnusable(_ error: OriginError) {
        failure = error
        var entry = OriginStatus.Server()
        entry.name = address.endpoints[0].description
        entry.downSince = MonotonicClock.nanoseconds()
        entry.lastError = error.description
        report.servers = [entry]
        listener?.originFailed(error.description)
    }

    /// Closes the client. Pending calls fail. May be called repeatedly.
    func close() {
        guard !isClosed else { return }
        isClosed = true
        for call in calls.takeAll() { call.fail(.closed) }
        resting = []
        stopCluster()
        callTimer?.stop()
        restTimer?.stop()
        (callTimer, restTimer) = (nil, nil)
        for server in servers.values { server.close() }
        publish()
        servers = [:]
    }

    // MARK: Servers

    /// Returns the server at an address, after connecting to it if it is new; nil if there are too many servers.
    func server(at endpoint: OriginEndpoint) -> RedisServer? {
        if let known = servers[endpoint] { return known }
        let used = Set(servers.values.map(\.part))
        guard let part = (0..<UInt32(OriginParts.most)).first(where: { !used.contains($0) }) else { return nil }
        let server = RedisServer(loop, endpoint, part: part, settings, parts, owner: self)
        if cluster != nil { server.heartbeatKey = Array("larder:heartbeat".utf8) }
        servers[endpoint] = server
        server.open()
        return server
    }

    /// Closes the connection to a server that is no longer needed.
    func retire(_ server: RedisServer) {
        servers[server.endpoint] = nil
        server.close()
    }

    /// Copies the state of the servers into the report, which other threads can read.
    func publish() {
        report.servers = servers.values.sorted { $0.part < $1.part }.map { server in
            var entry = OriginStatus.Server()
            entry.name = server.name
            entry.isUp = server.isTrusted && !isClosed
            entry.epoch = server.epoch
            entry.downSince = server.downSince
            entry.lastError = (server.lastError ?? server.held)?.description
            entry.recoveries = server.recoveries
            entry.heartbeatMicroseconds = server.heartbeatMicroseconds
            return entry
        }
    }

    // MARK: Calls

    private func deadline(_ start: Int64) -> Int64 { start + Int64(settings.limits.call) * 1_000_000 }

    private func begin(_ call: RedisCall, _ tasks: [RedisTask]) {
        guard !isClosed else { return call.fail(.closed) }
        if let failure { return call.fail(failure) }
        cluster?.replicas?.note(call)
        while let first = calls.first, first.isDone { _ = calls.popFirst() }
        calls.append(call)
        call.tasks = tasks
        if calls.count == 1 { armCallTimer() }
        for task in tasks { route(task) }
    }

    /// Makes a call that changes something, and counts it.
    private func makeCall<Answer>(
        parts: Int = 1, from start: Int64, add: @escaping (Answer, Answer) -> Answer = { $1 },
        _ completion: @escaping RedisAnswerCall<Answer>.Completion
    ) -> RedisAnswerCall<Answer> {
        report.commands += 1
        return RedisAnswerCall(parts: parts, deadline: deadline(start), add: add) { [report] result in
            report.count(result)
            completion(result)
        }
    }

    func read(
        _ keys: [[UInt8]], from start: Int64, meanwhile: ((Int, OriginReading) -> Void)?,
        _ completion: @escaping RedisReadCall.Completion
    ) {
        guard !keys.isEmpty else { return completion([]) }
        _ = tracker.begin()
        let call = RedisReadCall(count: keys.count, deadline: deadline(start)) { [unowned self] results in
            tracker.end()
            report.count(results)
            completion(results)
        }
        call.meanwhile = meanwhile
        call.check = { [unowned self] index, heard in
            guard let stamp = heard.reading.stamp, parts.epoch(stamp.part) == stamp.epoch,
                parts.slotEpoch(Int(stamp.slot)) == stamp.slotEpoch,
                !tracker.hasChanged(keys[index], since: heard.heard)
            else { return nil }
            return stamp
        }
        begin(
            call,
            keys.enumerated().map { index, key in
                let task = RedisTask(.read(call, index: index), slot: slot(of: key))
                task.key = key
                return task
            })
    }

    func write(_ write: OriginWrite, from start: Int64, _ completion: @escaping RedisWriteCall.Completion) {
        _ = tracker.begin()
        let call = makeCall(from: start) { [unowned self] (result: Result<OriginAcknowledgement, OriginError>) in
            tracker.end()
            completion(result)
        }
        let task = RedisTask(.write(call, write), slot: slot(of: write.key))
        task.key = write.key
        guard write.value.count <= settings.limits.valueBytes else {
            return call.fail(.tooLarge(bytes: write.value.count, most: settings.limits.valueBytes))
        }
        begin(call, [task])
    }

    func remove(_ keys: [[UInt8]], from start: Int64, _ completion: @escaping RedisRemoveCall.Completion) {
        guard !keys.isEmpty else { return completion(.success(0)) }
        // In a cluster, all keys of a command must be in the same slot.
        let groups = cluster == nil ? [nil: keys] : Dictionary(grouping: keys) { slot(of: $0) }
        let call = makeCall(parts: groups.count, from: start, add: +, completion)
        begin(
            call,
            groups.map { slot, keys in
                let task = RedisTask(.remove(call, keys), slot: slot)
                task.key = keys[0]
                return task
            })
    }

    func perform(
        _ words: [[UInt8]], key: [UInt8]?, from start: Int64, _ completion: @escaping RedisCommandCall.Completion
    ) {
        let call = makeCall(from: start, completion)
        guard !words.isEmpty else { return call.fail(.refused("ERR a command needs a name")) }
        let work = RedisTask.Work.commands(call, [words], keys: key.map { [$0] } ?? [], isTransaction: false)
        let task = RedisTask(work, slot: key.flatMap(slot(of:)))
        task.key = key
        begin(call, [task])
    }

    func perform(
        transaction commands: [[[UInt8]]], keys: [[UInt8]], from start: Int64,
        _ completion: @escaping RedisCommandCall.Completion
    ) {
        let call = makeCall(from: start, completion)
        let slots = Set(keys.compactMap(slot(of:)))
        guard slots.count < 2 else {
            return call.fail(.refused("CROSSSLOT Keys in request don't hash to the same slot"))
        }
        let task = RedisTask(.commands(call, commands, keys: keys, isTransaction: true), slot: slots.first)
        guard !mayHaveTransactions else { return begin(call, [task]) }
        // A server that rejects MULTI would run the commands one by one. So first try an empty transaction.
        let trial = RedisCommandCall(deadline: call.deadline) { [unowned self] result in
            switch result {
            case .success:
                mayHaveTransactions = true
                begin(call, [task])
            case .failure(let error): call.fail(error)
            }
        }
        begin(trial, [RedisTask(.commands(trial, [], keys: [], isTransaction: true), slot: slots.first)])
    }

    func settle(_ key: [UInt8]?, _ completion: @escaping () -> Void) {
        let server =
            if let cluster { key.flatMap { isClosed ? nil : cluster.owners[HashSlot.of($0)] } } else {
                servers.values.first
            }
        // If the server is not trusted to report invalidations, there is nothing to wait for.
        guard let server, server.isTrusted, settings.setup.tracking != .none else { return completion() }
        // The reply to PING arrives after all invalidations that the server has sent before it. A lost connection is no
        // error here, because the loss ends the epoch anyway.
        server.send([[Words.ping]], timeout: settings.limits.heartbeatLimit) { _ in completion() }
    }

    func sendSideRequest(_ words: [[UInt8]], _ completion: @escaping RedisCommandCall.Completion) {
        if let failure { return completion(.failure(failure)) }
        guard !isClosed, cluster == nil, let server = servers.values.first else {
            return completion(.failure(isClosed ? .closed : .refused("ERR a cluster has more than one server")))
        }
        server.sendSideRequest(words, completion)
    }

    /// Suspends all servers: their calls fail with this reason. Nil resumes the servers.
    func hold(_ reason: String?) {
        for server in servers.values { server.hold(reason) }
        publish()
    }

    private func slot(of key: [UInt8]) -> Int? { cluster == nil ? nil : HashSlot.of(key) }

    // MARK: Time

    private func armCallTimer() {
        while let first = calls.first, first.isDone { _ = calls.popFirst() }
        guard let first = calls.first else { return }
        let left = first.deadline - MonotonicClock.nanoseconds()
        callTimer?.start(milliseconds: Int(max(0, left) / 1_000_000) + 1)
    }

    private func endOverdueCalls() {
        let now = MonotonicClock.nanoseconds()
        while let first = calls.first, first.isDone || first.deadline <= now {
            _ = calls.popFirst()
            guard !first.isDone else { continue }
            timeOut(first)
        }
        armCallTimer()
    }

    private func timeOut(_ call: RedisCall) {
        var slow: [ObjectIdentifier: RedisTask] = [:]
        for task in call.tasks {
            guard let owner = task.owner else { continue }
            slow[ObjectIdentifier(owner)] = task
            // The server may have executed the command although its reply did not arrive.
            if task.isSent { notifyWritten(task) }
        }
        for server in servers.values { slow[ObjectIdentifier(server)].map(server.noteTimeout) }
        report.timeouts += 1
        call.fail(call.lastError ?? .timedOut(milliseconds: settings.limits.call))
    }

    /// Schedules a retry of the task after a back-off.
    /// - Returns: false if the call's deadline is before the retry.
    func rest(_ task: RedisTask, because error: OriginError) -> Bool {
        task.rests += 1
        let milliseconds = RetryBackoff.rest(after: task.rests, from: 20, to: 250, jitter: 0)
        let due = MonotonicClock.nanoseconds() + milliseconds * 1_000_000
        guard due < task.call.deadline, !isClosed else { return false }
        task.call.lastError = error
        task.reset()
        resting.append((due, task))
        if resting.count == 1 { restTimer?.start(milliseconds: Self.backoffStep) }
        return true
    }

    private func resume() {
        let now = MonotonicClock.nanoseconds()
        let due = resting.filter { $0.due <= now }
        resting.removeAll { $0.due <= now }
        if !resting.isEmpty { restTimer?.start(milliseconds: Self.backoffStep) }
        for entry in due where !entry.task.call.isDone { route(entry.task) }
    }

    // MARK: Routes

    /// Sends a task to the server that owns the slot of its key.
    func route(_ task: RedisTask) {
        guard !task.call.isDone else { return }
        if cluster != nil { return routeInCluster(task) }
        guard let server = servers.values.first else { return task.answer(.closed) }
        server.submit(task)
    }
}

/// The counters of an origin, and the latest state of its servers, for other threads to read.
@dynamicMemberLookup
final class RedisReport: Sendable {
    private let status = Locked(OriginStatus())

    var all: OriginStatus { status.withLock { $0 } }

    /// One of the status values. Adding to a value need not be atomic, because only one thread changes the values.
    subscript<Value: Sendable>(dynamicMember path: WritableKeyPath<OriginStatus, Value>) -> Value {
        get { status.withLock { $0[keyPath: path] } }
        set { status.withLock { $0[keyPath: path] = newValue } }
    }

    func count(_ results: [Result<OriginReading, OriginError>]) {
        status.withLock { status in
            for result in results {
                switch result {
                case .success(let reading):
                    status.reads += 1
                    if reading.value == nil { status.absentReads += 1 }
                case .failure: status.failures += 1
                }
            }
        }
    }

    func count<Success>(_ result: Result<Success, OriginError>) {
        if case .failure = result { self.failures += 1 }
    }
}
