import LarderPlatform
import LarderRESP
import LarderVocabulary

/// Hears of a server. Called on the loop's thread.
protocol RedisServerOwner: AnyObject {
    var heardSequence: UInt64 { get }
    /// It can be asked.
    func serverIsUp(_ server: RedisServer)
    func serverIsDown(_ server: RedisServer, _ error: OriginError)
    /// It was not believed, and its connection could not be made, or has ended.
    func serverFailed(_ server: RedisServer, _ error: OriginError)
    /// It is believed, from now on.
    func serverIsBelieved(_ server: RedisServer, again: Bool)
    /// Its epoch has ended.
    func serverLost(_ server: RedisServer, _ reason: String)
    func server(_ server: RedisServer, invalidated keys: [[UInt8]])
    /// It does not own what it owned.
    func serverOwnsOther(_ server: RedisServer)
    func server(_ server: RedisServer, answered task: RedisTask)
    func server(_ server: RedisServer, failed task: RedisTask, _ error: OriginError)
    /// A replica has answered a second question.
    func replicaAnswered(_ task: RedisTask)
}

/// What the servers of an origin have in common.
struct RedisSettings {
    var limits: OriginLimits
    var setup: RedisSetup
    /// Nil for connections that are not encrypted.
    var tls: TLSContext?
    /// After so many milliseconds a read is asked of a replica too; nil for never.
    var secondReadAfter: Int?
}

/// One server of an origin: a connection that reads and hears, one for other commands, its heartbeat, its epoch, and
/// whether it rests. Confined to its loop; to be closed before it is released.
final class RedisServer: RedisLinkUser, RedisTaskOwner {
    let endpoint: OriginEndpoint
    let part: UInt32
    private let loop: OriginLoop
    private let settings: RedisSettings
    private let parts: OriginParts
    private weak var owner: (any RedisServerOwner)?

    /// What reads and writes entries, and hears what changes.
    private var reading: RedisLink?
    /// What runs other commands: what they change is told to the connection that reads, as a stranger's change is.
    private var commands: RedisLink?

    private var beatTimer: LoopTimer?
    private var limitTimer: LoopTimer?
    private var beat: Heartbeat?
    private var bytesAtBeat = 0
    private var isLastCall = false
    /// Answered in a row.
    private var goodBeats = 0
    private var wasLost = false
    private(set) var isBelieved = false
    private(set) var heartbeatMicroseconds: Int64 = 0
    private(set) var lastError: OriginError?
    /// Why it is not asked although it answers; nil if it is.
    private(set) var held: OriginError?
    private(set) var beliefs = 0
    private var questions: [ObjectIdentifier: SideQuestion] = [:]
    /// Since when it is not believed; nil while it is.
    private(set) var downSince: Int64?
    /// Whether a connection could not be made since it was believed last.
    private var hasFailed = false
    private var report: Heartbeat.ClusterReport?
    private var beatsUntilReport = 0
    /// A key in one of its slots; nil outside of a cluster.
    var heartbeatKey: [UInt8]?

    private(set) var tasksUnderWay = 0
    private(set) var usedAt: Int64
    private var breaker: Breaker

    /// In clusters up to this size each heartbeat asks for the report.
    private static let smallCluster = 64
    /// The most that waits for the system to send it.
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

    /// Begins to connect. To be called once.
    func open() { reading?.open() }

    /// Idempotent. What is under way fails, which its owner hears; the epoch ends.
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

    /// Whether its connection failed and is not tried this moment.
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
            return .resting("\(endpoint): \(settings.limits.callsWaiting) calls wait already")
        }
        if link.unsentBytes > Self.unsentBytesMax {
            return .resting("\(endpoint): \(link.unsentBytes >> 20) MiB wait to be sent already")
        }
        // What must be set right first is said as it is.
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

    /// Sends another exchange on the connection that reads.
    func send(_ exchange: any RedisExchange) {
        if let reading { reading.send(exchange) } else { exchange.fail(.closed) }
    }

    /// Asks it about itself, past all that is under way.
    func inquire(_ words: [[UInt8]], _ completion: @escaping RedisCommandCall.Completion) {
        if let error = reading?.error { return completion(.failure(error)) }
        let question = SideQuestion(loop, endpoint, settings, words) { [weak self] question, result in
            self?.questions[ObjectIdentifier(question)] = nil
            completion(result)
        }
        questions[ObjectIdentifier(question)] = question
        question.open()
    }

    /// Fails all that is asked of it from now on, and believes it no more; nil: no longer.
    func hold(_ reason: String?) {
        let before = held
        held = reason.map { .unsuitable($0) }
        if let held, held != before { lose(held.description) }
        guard held == nil, before != nil else { return }
        // What it said meanwhile was not passed on: nothing that was asked before is believed.
        parts.endEpoch(part)
        // What has failed until now was due to that.
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

    /// A task was not answered in time.
    func noteTimeout(_ task: RedisTask) {
        breaker.noteFailure("calls take too long", MonotonicClock.nanoseconds())
        if !isAskedAlways { sendBeat() }
        // Nobody watches over the other connection's heart.
        guard task.isForeign else { return }
        commands?.end(.interrupted("\(endpoint): no answer within \(settings.limits.call) ms"))
    }

    /// Whether what the task has read, or written, will be told when it changes.
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
        // Before everything else: what is read behind it may be believed when it is answered.
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
        // Of what is held nothing is believed. In a cycle its word would go round and round.
        guard link === reading, held == nil else { return }
        if let keys {
            owner?.server(self, invalidated: keys)
        } else {
            endEpochKeepingBelief("\(endpoint): all entries were removed there, or its tracking began anew")
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

    /// What it said so far is no longer believed; what it says from now on is.
    func endEpochKeepingBelief(_ reason: String) {
        guard isBelieved else { return }
        let until = parts.believedUntil(part)
        parts.endEpoch(part)
        parts.believe(part, until: until)
        owner?.serverLost(self, reason)
    }

    /// Some of its slots may have another owner: only what it said of these is no longer believed.
    func endEpochs(ofSlots slots: some Sequence<Int>, _ reason: String) {
        for slot in slots { parts.endEpoch(ofSlot: slot) }
        if isBelieved { owner?.serverLost(self, reason) }
    }

    // MARK: Heartbeat

    /// Where nothing is promised, a server is asked whether it is there only while that is in doubt.
    private var isAskedAlways: Bool { settings.setup.tracking != .none }

    private func sendNextBeat() {
        if isAskedAlways || !isBelieved { sendBeat() }
    }

    private func sendBeat() {
        guard isUp else { return }
        beatTimer?.start(milliseconds: settings.limits.heartbeat)
        // The one before is still under way.
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
        // A server of a cluster that was away may not know yet that another one has taken its place.
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
            endEpochs(ofSlots: slots, "\(endpoint): slots move (\(slots.count))")
        } else {
            endEpochKeepingBelief("\(endpoint): it has another role")
        }
        owner?.serverOwnsOther(self)
    }

    private func beatIsMissed() {
        guard beat != nil else { return }
        // When this thread is late itself, the answer may have come already: it is looked for once more.
        guard isLastCall else {
            isLastCall = true
            limitTimer?.start(milliseconds: 1)
            return
        }
        isLastCall = false
        let text = "\(endpoint): no answer to a heartbeat within \(settings.limits.heartbeatLimit) ms"
        lastError = .interrupted(text)
        lose(text)
        // While something comes, the heartbeat's answer is behind it. A connection that is silent may be dead.
        guard let reading, reading.bytesReceived != bytesAtBeat else {
            reading?.end(.interrupted(text))
            return
        }
        bytesAtBeat = reading.bytesReceived
        limitTimer?.start(milliseconds: settings.limits.heartbeatLimit)
    }
}

extension RedisSetup.Tracking {
    /// Whether changes of a key are told.
    func covers(_ key: [UInt8]) -> Bool {
        switch self {
        case .none: false
        case .read: true
        case .broadcast(let prefixes): prefixes.isEmpty || prefixes.contains { key.starts(with: $0) }
        }
    }
}
