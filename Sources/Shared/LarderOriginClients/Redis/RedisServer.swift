import LarderPlatform
import LarderRESP
import LarderVocabulary
import LarderWire

/// Receives the events of a server. Called on the loop's thread.
protocol RedisServerOwner: AnyObject {
    var invalidationSequence: UInt64 { get }
    /// The connection is established, so requests can be sent.
    func serverIsUp(_ server: RedisServer)
    func serverIsDown(_ server: RedisServer, _ error: OriginError)
    /// A connection attempt failed, or the connection was lost, while the server was not trusted.
    func serverFailed(_ server: RedisServer, _ error: OriginError)
    /// The server is trusted now. `again`: whether it was trusted before, or a connection to it has failed before.
    func serverIsTrusted(_ server: RedisServer, again: Bool)
    /// The epoch of the server, or of some of its slots, has ended: earlier readings may not be current any more.
    func serverLost(_ server: RedisServer, _ reason: String)
    func server(_ server: RedisServer, invalidated keys: [[UInt8]])
    /// The slots that the server owns may have changed.
    func serverOwnsOther(_ server: RedisServer)
    func server(_ server: RedisServer, answered task: RedisTask)
    func server(_ server: RedisServer, failed task: RedisTask, _ error: OriginError)
    /// A replica has replied to a read that was sent to it in addition to the primary.
    func replicaAnswered(_ task: RedisTask)
}

/// The settings shared by the servers of an origin.
struct RedisSettings {
    var limits: OriginLimits
    var setup: HandshakeSetup
    /// The certificates for TLS; nil for connections without TLS.
    var tls: TLSContext?
    /// The time, in milliseconds, after which a read without a reply is also sent to a replica; nil for never.
    var secondReadAfter: Int?
}

/// One server of an origin. Has a connection for entries and invalidations, one for other commands, a heartbeat, an
/// epoch, and a circuit breaker.
///
/// A server is *trusted* while the replies to heartbeats show that its invalidations arrive. An *epoch* is a time in
/// which no invalidation was missed. Used on the loop's thread only. Close it before you release it.
final class RedisServer: RedisTaskOwner {
    let endpoint: OriginEndpoint
    let part: UInt32
    private let loop: SocketLoop
    private let settings: RedisSettings
    private let parts: OriginParts
    private weak var owner: (any RedisServerOwner)?

    /// The connection for reads and writes of entries, which also receives invalidations.
    private var reading: RedisLink?
    /// The connection for other commands; nil before the first such command. The server reports changes made by these
    /// commands on `reading`, like changes made by other clients.
    private var commands: RedisLink?

    private var beatTimer: LoopTimer?
    private var limitTimer: LoopTimer?
    private var beat: Heartbeat?
    /// The number of bytes received when the pending heartbeat was sent, or when it was last found to be late.
    private var bytesAtBeat = 0
    /// Whether the heartbeat's time limit has passed once, and the reply is awaited for one more millisecond.
    private var isLastCall = false
    /// The number of consecutive successful heartbeats.
    private var goodBeats = 0
    /// Whether the server was trusted before, but is not trusted now.
    private var wasLost = false
    private(set) var isTrusted = false
    private(set) var heartbeatMicroseconds: Int64 = 0
    private(set) var lastError: OriginError?
    /// The reason why the server is suspended; nil if it is not.
    private(set) var held: OriginError?
    /// How many times the server became trusted.
    private(set) var recoveries = 0
    /// The connections of side requests.
    private var questions: [ObjectIdentifier: RedisLink] = [:]
    /// When the server stopped being trusted, in nanoseconds of the monotonic clock; nil while it is trusted.
    private(set) var downSince: Int64?
    /// Whether a connection has failed since the server was last trusted.
    private var hasFailed = false
    private var report: Heartbeat.ClusterReport?
    private var beatsUntilReport = 0
    /// The key that heartbeats read, in one of the server's slots; nil for a single server.
    var heartbeatKey: [UInt8]?

    private(set) var tasksUnderWay = 0
    private(set) var usedAt: Int64
    private var breaker: Breaker

    /// In clusters with fewer servers than this, each heartbeat requests a cluster report; in others, only some do.
    private static let smallCluster = 64
    /// If more bytes than this wait to be sent, further tasks fail.
    private static let unsentBytesMax = 256 << 20

    init(
        _ loop: SocketLoop, _ endpoint: OriginEndpoint, part: UInt32, _ settings: RedisSettings, _ parts: OriginParts,
        owner: any RedisServerOwner
    ) {
        self.loop = loop
        self.endpoint = endpoint
        self.part = part
        self.settings = settings
        self.parts = parts
        self.owner = owner
        usedAt = MonotonicClock.nanoseconds()
        downSince = usedAt
        breaker = Breaker(
            failures: settings.limits.failuresBeforeRest, restMilliseconds: Int64(settings.limits.rest))
        reading = RedisLink(loop, endpoint, settings.setup, settings.limits, tls: settings.tls, user: self)
        beatTimer = LoopTimer(loop) { [weak self] in self?.sendNextBeat() }
        limitTimer = LoopTimer(loop) { [weak self] in self?.beatIsMissed() }
    }

    /// Starts to connect. Call it once.
    func open() { reading?.open() }

    /// Closes the connections and ends the epoch. Pending tasks fail. May be called repeatedly.
    func close() {
        isTrusted = false
        parts.endEpoch(part)
        beatTimer?.stop()
        limitTimer?.stop()
        (beatTimer, limitTimer, beat) = (nil, nil, nil)
        reading?.close()
        commands?.close()
        for question in questions.values { question.close() }
        (reading, commands, owner) = (nil, nil, nil)
    }

    var epoch: UInt32 { parts.epoch(part) }
    var isUp: Bool { reading?.isUp ?? false }
    var name: String { endpoint.description }

    /// Whether the connection has failed, and will be opened again after a back-off.
    var isDown: Bool { reading?.error != nil }

    // MARK: Tasks

    var invalidationSequence: UInt64 { owner?.invalidationSequence ?? 0 }

    /// Sends a task. The task fails immediately if the server is overloaded, suspended or in back-off.
    func submit(_ task: RedisTask) {
        usedAt = MonotonicClock.nanoseconds()
        tasksUnderWay += 1
        task.owner = self
        guard let reading else { return task.fail(.closed) }
        if let error = refusal(reading) { return task.fail(error) }
        task.sentEpoch = epoch
        task.sentSlotEpoch = parts.slotEpoch(task.slot ?? 0)
        guard task.isForeign else { return reading.send(task) }
        commandLink().send(task)
    }

    private func refusal(_ link: RedisLink) -> OriginError? {
        if tasksUnderWay > settings.limits.callsWaiting {
            return .resting("\(endpoint): \(settings.limits.callsWaiting) calls are waiting already")
        }
        if link.unsentBytes > Self.unsentBytesMax {
            return .resting("\(endpoint): \(link.unsentBytes >> 20) MiB are waiting to be sent already")
        }
        // Report configuration errors unchanged.
        if case .unsuitable? = link.error { return link.error }
        if let held, link.error == nil { return held }
        return breaker.refusal(MonotonicClock.nanoseconds()).map { reason in
            .resting(reason.contains("\(endpoint)") ? reason : "\(endpoint): \(reason)")
        }
    }

    private func commandLink() -> RedisLink {
        if let commands { return commands }
        let link = makeLink(user: self)
        commands = link
        link.open()
        return link
    }

    /// Makes a link without tracking.
    private func makeLink(user: RedisServer?, isKept: Bool = true) -> RedisLink {
        var setup = settings.setup
        setup.tracking = .none
        return RedisLink(loop, endpoint, setup, settings.limits, tls: settings.tls, user: user, isKept: isKept)
    }

    /// Sends commands that are not a task, on the connection for entries.
    func send(
        _ commands: [[[UInt8]]], timeout: Int = 0,
        _ completion: @escaping (Result<[RESPValue], OriginError>) -> Void
    ) {
        if let reading { reading.send(commands, timeout: timeout, completion) } else { completion(.failure(.closed)) }
    }

    /// Sends a request about the server itself on a separate connection, so that it does not wait for other requests.
    func sendSideRequest(_ words: [[UInt8]], _ completion: @escaping RedisCommandCall.Completion) {
        if let error = reading?.error { return completion(.failure(error)) }
        let question = makeLink(user: nil, isKept: false)
        questions[ObjectIdentifier(question)] = question
        question.send([words], timeout: settings.limits.call) { [weak self] result in
            self?.questions[ObjectIdentifier(question)] = nil
            question.close()
            completion(
                result.flatMap { replies in
                    replies[0].errorMessage.map { .failure(.refused($0)) } ?? .success(replies[0])
                })
        }
    }

    /// Suspends the server: it is no longer trusted, and all its tasks fail with this reason. Nil resumes the server.
    func hold(_ reason: String?) {
        let before = held
        held = reason.map { .unsuitable($0) }
        if let held, held != before { lose(held.description) }
        guard held == nil, before != nil else { return }
        // Invalidations were dropped during the suspension, so end the epoch: earlier readings may not be current.
        parts.endEpoch(part)
        // Close the circuit breaker, because the suspension has caused the failures.
        breaker.noteSuccess()
        sendBeat()
    }

    func taskAnswered(_ task: RedisTask) {
        tasksUnderWay -= 1
        if !task.call.isDone { breaker.noteSuccess() }
        owner?.server(self, answered: task)
    }

    func taskFailed(_ task: RedisTask, _ error: OriginError) {
        tasksUnderWay -= 1
        breaker.noteAbandoned()
        owner?.server(self, failed: task, error)
    }

    /// Records that a task has timed out.
    func noteTimeout(_ task: RedisTask) {
        breaker.noteFailure("calls take too long", MonotonicClock.nanoseconds())
        if !isAskedAlways { sendBeat() }
        // Close the connection for other commands: no heartbeat would detect that this connection is dead.
        guard task.isForeign else { return }
        commands?.drop("no answer within \(settings.limits.call) ms")
    }

    /// Returns a stamp if the server will report changes of the entry that the task has read or written; nil otherwise.
    func stamp(for task: RedisTask) -> OriginStamp? {
        let slot = task.slot ?? 0
        guard isTrusted, !task.isAsking, task.sentEpoch == epoch, task.sentSlotEpoch == parts.slotEpoch(slot),
            settings.setup.tracking.covers(task.key ?? [])
        else { return nil }
        return OriginStamp(
            part: part, epoch: task.sentEpoch, slot: UInt16(truncatingIfNeeded: slot), slotEpoch: task.sentSlotEpoch)
    }

    // MARK: The links

    func linkIsUp(_ link: RedisLink) {
        breaker.noteSuccess()
        guard link === reading else { return }
        lastError = nil
        goodBeats = 0
        report = nil
        beatsUntilReport = 0
        beat = nil
        owner?.serverIsUp(self)
        // Send a heartbeat before the tasks: its reply arrives first, so that the replies to the tasks can get stamps.
        sendBeat()
    }

    /// The connection was lost or could not be made. The link tries again by itself.
    func linkIsDown(_ link: RedisLink, _ error: OriginError) {
        breaker.noteFailure(error.description, MonotonicClock.nanoseconds())
        guard link === reading else { return }
        lastError = error
        beat = nil
        limitTimer?.stop()
        beatTimer?.stop()
        if isTrusted {
            lose(error.description)
        } else {
            hasFailed = true
            owner?.serverFailed(self, error)
        }
        owner?.serverIsDown(self, error)
    }

    /// The server has reported that keys have changed; nil means that any key may have changed.
    func link(_ link: RedisLink, invalidated keys: [[UInt8]]?) {
        // Drop invalidations of a suspended server: in a cycle of origins, invalidations would be passed on forever.
        guard link === reading, held == nil else { return }
        if let keys {
            owner?.server(self, invalidated: keys)
        } else {
            endEpochKeepingBelief("\(endpoint): all its entries were removed, or its tracking restarted")
        }
    }

    // MARK: Epochs

    private func lose(_ reason: String) {
        guard isTrusted else { return }
        isTrusted = false
        downSince = MonotonicClock.nanoseconds()
        wasLost = true
        goodBeats = 0
        parts.endEpoch(part)
        owner?.serverLost(self, reason)
    }

    /// Starts a new epoch while the server stays trusted: only readings from now on are known to be current.
    func endEpochKeepingBelief(_ reason: String) {
        guard isTrusted else { return }
        let until = parts.trustedUntil(part)
        parts.endEpoch(part)
        parts.trust(part, until: until)
        owner?.serverLost(self, reason)
    }

    /// Ends the epochs of some slots, whose owner may have changed. Readings of other slots stay valid.
    func endEpochs(ofSlots slots: some Sequence<Int>, _ reason: String) {
        for slot in slots { parts.endEpoch(ofSlot: slot) }
        if isTrusted { owner?.serverLost(self, reason) }
    }

    // MARK: Heartbeat

    /// Whether heartbeats are always sent. If false, only while the server is not trusted, and after a timeout.
    private var isAskedAlways: Bool { settings.setup.tracking != .none }

    private func sendNextBeat() {
        if isAskedAlways || !isTrusted { sendBeat() }
    }

    private func sendBeat() {
        guard isUp else { return }
        beatTimer?.start(milliseconds: settings.limits.heartbeat)
        // Do not send a second heartbeat while one is pending.
        guard beat == nil else { return }
        let asksForReport = heartbeatKey != nil && beatsUntilReport <= 0
        if asksForReport { beatsUntilReport = (report?.servers ?? 0) / Self.smallCluster + 1 }
        beatsUntilReport -= 1
        let beat = Heartbeat(key: heartbeatKey, asksForReport: asksForReport)
        self.beat = beat
        bytesAtBeat = reading?.bytesReceived ?? 0
        isLastCall = false
        limitTimer?.start(milliseconds: settings.limits.heartbeatLimit)
        reading?.send(beat.commands, accepts: beat.accepts) { [weak self] result in
            if case .success(let replies) = result { self?.heard(beat, beat.answer(replies)) }
        }
    }

    private func heard(_ beat: Heartbeat, _ answer: Heartbeat.Answer) {
        guard beat === self.beat else { return }
        self.beat = nil
        limitTimer?.stop()
        heartbeatMicroseconds = (MonotonicClock.nanoseconds() - beat.sentAt) / 1000
        switch answer {
        case .bad(let message):
            lastError = .unavailable("\(endpoint): \(message)")
            lose("\(endpoint): \(message)")
            owner?.serverOwnsOther(self)
        case .good(let report):
            if let report { compare(report) }
            goodBeats += 1
            trust(since: beat.sentAt)
        }
    }

    private func trust(since sentAt: Int64) {
        // After a failure, a server of a cluster must pass two heartbeats. At the first heartbeat, the server may not
        // know yet that another server has replaced it.
        guard goodBeats >= (wasLost && heartbeatKey != nil ? 2 : 1) else { return }
        guard held == nil else {
            lastError = nil
            return
        }
        parts.trust(part, until: sentAt + Int64(settings.limits.staleness) * 1_000_000)
        guard !isTrusted else { return }
        isTrusted = true
        recoveries += 1
        lastError = nil
        downSince = nil
        owner?.serverIsTrusted(self, again: wasLost || hasFailed)
        (wasLost, hasFailed) = (false, false)
    }

    private func compare(_ report: Heartbeat.ClusterReport) {
        defer { self.report = report }
        guard let last = self.report, last.description != report.description else { return }
        if let slots = ClusterSelf.slots(between: last.description, and: report.description) {
            endEpochs(ofSlots: slots, "\(endpoint): slots are migrating (\(slots.count))")
        } else {
            endEpochKeepingBelief("\(endpoint): its role has changed")
        }
        owner?.serverOwnsOther(self)
    }

    private func beatIsMissed() {
        guard beat != nil else { return }
        // If this thread was delayed, the reply may have arrived but not been read. Wait one more millisecond.
        guard isLastCall else {
            isLastCall = true
            limitTimer?.start(milliseconds: 1)
            return
        }
        isLastCall = false
        let reason = "no answer to a heartbeat within \(settings.limits.heartbeatLimit) ms"
        let text = "\(endpoint): \(reason)"
        lastError = .interrupted(text)
        lose(text)
        // If no bytes have arrived meanwhile, the connection may be dead. Otherwise the reply may follow other replies.
        guard let reading, reading.bytesReceived != bytesAtBeat else {
            reading?.drop(reason)
            return
        }
        bytesAtBeat = reading.bytesReceived
        limitTimer?.start(milliseconds: settings.limits.heartbeatLimit)
    }
}

extension HandshakeSetup.Tracking {
    /// Whether the server reports changes of the key.
    func covers(_ key: [UInt8]) -> Bool {
        switch self {
        case .none, .optIn: false
        case .read: true
        case .broadcast(let prefixes): prefixes.isEmpty || prefixes.contains { key.starts(with: $0) }
        }
    }
}

/// A request that checks whether a server responds and still owns its slots. Used on the loop's thread only.
final class Heartbeat {
    enum Answer {
        /// The server responds. The value is the cluster report if it was requested.
        case good(ClusterReport?)
        /// The server has sent this error.
        case bad(String)
    }

    struct ClusterReport {
        let description: String
        let servers: Int
    }

    let commands: [[[UInt8]]]
    let sentAt = MonotonicClock.nanoseconds()

    /// - Parameter key: the key to read, which is in one of the server's slots; nil for a single server.
    init(key: [UInt8]?, asksForReport: Bool) {
        // Read a key. PING would not be enough: a server replies to PING even if the server has left the cluster or no
        // longer owns the slot.
        let report = asksForReport ? [["CLUSTER", "NODES"].map { Array($0.utf8) }] : []
        commands = key.map { [[Words.pttl, $0]] + report } ?? [[Words.ping]]
    }

    /// Whether a reply can belong to the command with this index.
    func accepts(_ index: Int, _ reply: RESPValue) -> Bool {
        if index > 0 { return reply.string != nil }
        return commands[0][0] == Words.ping ? reply.string == "PONG" : reply.int != nil
    }

    func answer(_ replies: [RESPValue]) -> Answer {
        // Ignore NOPERM: a server that denies access to the key still responds, and reports its slots.
        if let message = replies[0].errorMessage, !message.hasPrefix("NOPERM") { return .bad(message) }
        guard replies.count > 1 else { return .good(nil) }
        if let message = replies[1].errorMessage { return .bad(message) }
        guard let description = ClusterSelf.description(replies[1]) else {
            return .bad("the reply to CLUSTER NODES does not identify the server")
        }
        return .good(ClusterReport(description: description, servers: ClusterSelf.servers(replies[1])))
    }
}
