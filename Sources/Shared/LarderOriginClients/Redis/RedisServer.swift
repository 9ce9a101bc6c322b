import LarderPlatform
import LarderRESP
import LarderVocabulary

/// Receives the events of a server. Called on the loop's thread.
protocol RedisServerOwner: AnyObject {
    var heardSequence: UInt64 { get }
    /// Requests can be sent.
    func serverIsUp(_ server: RedisServer)
    func serverIsDown(_ server: RedisServer, _ error: OriginError)
    /// The server was not trusted, and its connection failed or was lost.
    func serverFailed(_ server: RedisServer, _ error: OriginError)
    /// The server is trusted from now on.
    func serverIsBelieved(_ server: RedisServer, again: Bool)
    /// The server's epoch has ended.
    func serverLost(_ server: RedisServer, _ reason: String)
    func server(_ server: RedisServer, invalidated keys: [[UInt8]])
    /// The server no longer owns the slots that it owned.
    func serverOwnsOther(_ server: RedisServer)
    func server(_ server: RedisServer, answered task: RedisTask)
    func server(_ server: RedisServer, failed task: RedisTask, _ error: OriginError)
    /// A replica has answered a second read.
    func replicaAnswered(_ task: RedisTask)
}

/// The settings shared by the servers of an origin.
struct RedisSettings {
    var limits: OriginLimits
    var setup: RedisSetup
    /// Nil for connections that are not encrypted.
    var tls: TLSContext?
    /// The time in milliseconds after which a read is also sent to a replica; nil for never.
    var secondReadAfter: Int?
}

/// One server of an origin: a connection for entries and invalidations, one for other commands, its heartbeat, its
/// epoch, and its circuit breaker.
///
/// A server is *trusted* while heartbeats show that its invalidations arrive. Confined to its loop. Close it before
/// releasing it.
final class RedisServer: RedisLinkUser, RedisTaskOwner {
    let endpoint: OriginEndpoint
    let part: UInt32
    private let loop: OriginLoop
    private let settings: RedisSettings
    private let parts: OriginParts
    private weak var owner: (any RedisServerOwner)?

    /// Reads and writes entries, and receives invalidations.
    private var reading: RedisLink?
    /// Runs other commands. Their changes are reported to `reading` like those of other clients.
    private var commands: RedisLink?

    private var beatTimer: LoopTimer?
    private var limitTimer: LoopTimer?
    private var beat: Heartbeat?
    private var bytesAtBeat = 0
    private var isLastCall = false
    /// The number of consecutive successful heartbeats.
    private var goodBeats = 0
    private var wasLost = false
    private(set) var isBelieved = false
    private(set) var heartbeatMicroseconds: Int64 = 0
    private(set) var lastError: OriginError?
    /// Why the server is suspended; nil if it is not.
    private(set) var held: OriginError?
    private(set) var beliefs = 0
    private var questions: [ObjectIdentifier: SideQuestion] = [:]
    /// The time at which trust was lost; nil while the server is trusted.
    private(set) var downSince: Int64?
    /// Whether a connection has failed since the server was last trusted.
    private var hasFailed = false
    private var report: Heartbeat.ClusterReport?
    private var beatsUntilReport = 0
    /// A key in one of its slots; nil outside of a cluster.
    var heartbeatKey: [UInt8]?

    private(set) var tasksUnderWay = 0
    private(set) var usedAt: Int64
    private var breaker: Breaker

    /// Up to this size of a cluster, each heartbeat requests the report.
    private static let smallCluster = 64
    /// The maximum number of bytes that wait to be sent.
    private static let unsentBytesMax = 256 << 20

    init(
        _ loop: OriginLoop, _ endpoint: OriginEndpoint, part: UInt32, _ settings: RedisSettings, _ parts: OriginParts,
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

    /// Closes the server and ends its epoch. Idempotent. The owner is notified of tasks that fail.
    func close() {
        isBelieved = false
        parts.endEpoch(part)
        beatTimer?.close()
        limitTimer?.close()
        (beatTimer, limitTimer, beat) = (nil, nil, nil)
        reading?.close()
        commands?.close()
        for question in questions.values { question.close() }
        (reading, commands, owner) = (nil, nil, nil)
    }

    var epoch: UInt32 { parts.epoch(part) }
    var isUp: Bool { reading?.isUp ?? false }
    var name: String { endpoint.description }

    /// Whether its connection has failed and waits for a retry.
    var isDown: Bool { reading?.error != nil }

    // MARK: Tasks

    var heardSequence: UInt64 { owner?.heardSequence ?? 0 }

    /// Sends a task, or fails it.
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
        // Errors of configuration are reported unchanged.
        if case .unsuitable? = link.error { return link.error }
        if let held, link.error == nil { return held }
        return breaker.refusal(MonotonicClock.nanoseconds()).map { reason in
            .resting(reason.contains("\(endpoint)") ? reason : "\(endpoint): \(reason)")
        }
    }

    private func commandLink() -> RedisLink {
        if let commands { return commands }
        var setup = settings.setup
        setup.tracking = .none
        let link = RedisLink(loop, endpoint, setup, settings.limits, tls: settings.tls, user: self)
        commands = link
        link.open()
        return link
    }

    /// Sends an exchange that is not a task on the connection for entries.
    func send(_ exchange: any RedisExchange) {
        if let reading { reading.send(exchange) } else { exchange.fail(.closed) }
    }

    /// Sends a request about the server itself, ahead of everything under way.
    func inquire(_ words: [[UInt8]], _ completion: @escaping RedisCommandCall.Completion) {
        if let error = reading?.error { return completion(.failure(error)) }
        let question = SideQuestion(loop, endpoint, settings, words) { [weak self] question, result in
            self?.questions[ObjectIdentifier(question)] = nil
            completion(result)
        }
        questions[ObjectIdentifier(question)] = question
        question.open()
    }

    /// Suspends the server: it is no longer trusted, and all tasks fail. Nil resumes it.
    func hold(_ reason: String?) {
        let before = held
        held = reason.map { .unsuitable($0) }
        if let held, held != before { lose(held.description) }
        guard held == nil, before != nil else { return }
        // Invalidations were dropped while the server was suspended, so earlier readings are not trusted.
        parts.endEpoch(part)
        // Earlier failures were caused by the suspension.
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

    /// Records that a task timed out.
    func noteTimeout(_ task: RedisTask) {
        breaker.noteFailure("calls take too long", MonotonicClock.nanoseconds())
        if !isAskedAlways { sendBeat() }
        // Close the other connection, which has no heartbeat.
        guard task.isForeign else { return }
        commands?.end(.interrupted("\(endpoint): no answer within \(settings.limits.call) ms"))
    }

    /// Returns a stamp if changes of the entry that the task has read or written will be reported.
    func stamp(for task: RedisTask) -> OriginStamp? {
        let slot = task.slot ?? 0
        guard isBelieved, !task.isAsking, task.sentEpoch == epoch, task.sentSlotEpoch == parts.slotEpoch(slot),
            settings.setup.tracking.covers(task.key ?? [])
        else { return nil }
        return OriginStamp(
            part: part, epoch: task.sentEpoch, slot: UInt16(truncatingIfNeeded: slot), slotEpoch: task.sentSlotEpoch)
    }

    // MARK: The link

    func linkIsUp(_ link: RedisLink) {
        breaker.noteSuccess()
        guard link === reading else { return }
        lastError = nil
        goodBeats = 0
        report = nil
        beatsUntilReport = 0
        beat = nil
        owner?.serverIsUp(self)
        // The heartbeat comes first, so that the replies after it can be trusted.
        sendBeat()
    }

    func linkIsDown(_ link: RedisLink, _ error: OriginError) {
        breaker.noteFailure(error.description, MonotonicClock.nanoseconds())
        guard link === reading else { return }
        lastError = error
        beat = nil
        limitTimer?.stop()
        beatTimer?.stop()
        if isBelieved {
            lose(error.description)
        } else {
            hasFailed = true
            owner?.serverFailed(self, error)
        }
        owner?.serverIsDown(self, error)
    }

    func link(_ link: RedisLink, invalidated keys: [[UInt8]]?) {
        // Invalidations of a suspended server are dropped. In a cycle they would circulate forever.
        guard link === reading, held == nil else { return }
        if let keys {
            owner?.server(self, invalidated: keys)
        } else {
            endEpochKeepingBelief("\(endpoint): all its entries were removed, or its tracking restarted")
        }
    }

    // MARK: Epochs

    private func lose(_ reason: String) {
        guard isBelieved else { return }
        isBelieved = false
        downSince = MonotonicClock.nanoseconds()
        wasLost = true
        goodBeats = 0
        parts.endEpoch(part)
        owner?.serverLost(self, reason)
    }

    /// Starts a new epoch: earlier readings are no longer trusted, later ones are.
    func endEpochKeepingBelief(_ reason: String) {
        guard isBelieved else { return }
        let until = parts.believedUntil(part)
        parts.endEpoch(part)
        parts.believe(part, until: until)
        owner?.serverLost(self, reason)
    }

    /// Some of its slots may have another owner: ends the epochs of these slots only.
    func endEpochs(ofSlots slots: some Sequence<Int>, _ reason: String) {
        for slot in slots { parts.endEpoch(ofSlot: slot) }
        if isBelieved { owner?.serverLost(self, reason) }
    }

    // MARK: Heartbeat

    /// Without tracking, heartbeats are sent only while the server's state is in doubt.
    private var isAskedAlways: Bool { settings.setup.tracking != .none }

    private func sendNextBeat() {
        if isAskedAlways || !isBelieved { sendBeat() }
    }

    private func sendBeat() {
        guard isUp else { return }
        beatTimer?.start(milliseconds: settings.limits.heartbeat)
        // The previous heartbeat is still under way.
        guard beat == nil else { return }
        let asksForReport = heartbeatKey != nil && beatsUntilReport <= 0
        if asksForReport { beatsUntilReport = (report?.servers ?? 0) / Self.smallCluster + 1 }
        beatsUntilReport -= 1
        let beat = Heartbeat(key: heartbeatKey, asksForReport: asksForReport) { [weak self] beat, answer in
            self?.heard(beat, answer)
        }
        self.beat = beat
        bytesAtBeat = reading?.bytesReceived ?? 0
        isLastCall = false
        limitTimer?.start(milliseconds: settings.limits.heartbeatLimit)
        reading?.send(beat)
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
            believe(since: beat.sentAt)
        }
    }

    private func believe(since sentAt: Int64) {
        // A server of a cluster that was unreachable may not know yet that another one has replaced it, so it needs two
        // heartbeats.
        guard goodBeats >= (wasLost && heartbeatKey != nil ? 2 : 1) else { return }
        guard held == nil else {
            lastError = nil
            return
        }
        parts.believe(part, until: sentAt + Int64(settings.limits.staleness) * 1_000_000)
        guard !isBelieved else { return }
        isBelieved = true
        beliefs += 1
        lastError = nil
        downSince = nil
        owner?.serverIsBelieved(self, again: wasLost || hasFailed)
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
        // If this thread itself is late, the reply may have arrived already: check again.
        guard isLastCall else {
            isLastCall = true
            limitTimer?.start(milliseconds: 1)
            return
        }
        isLastCall = false
        let text = "\(endpoint): no answer to a heartbeat within \(settings.limits.heartbeatLimit) ms"
        lastError = .interrupted(text)
        lose(text)
        // While bytes arrive, the reply to the heartbeat is only queued after them. But a silent connection may be
        // dead, so end it.
        guard let reading, reading.bytesReceived != bytesAtBeat else {
            reading?.end(.interrupted(text))
            return
        }
        bytesAtBeat = reading.bytesReceived
        limitTimer?.start(milliseconds: settings.limits.heartbeatLimit)
    }
}

extension RedisSetup.Tracking {
    /// Whether changes of the key are reported.
    func covers(_ key: [UInt8]) -> Bool {
        switch self {
        case .none: false
        case .read: true
        case .broadcast(let prefixes): prefixes.isEmpty || prefixes.contains { key.starts(with: $0) }
        }
    }
}
