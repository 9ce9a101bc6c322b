import LarderPlatform
import LarderWire

/// Sends reads to the replicas of a cluster if the primary does not reply in time. Used on the loop's thread only.
/// Close it before you release it.
final class ReplicaReads: RedisTaskOwner {
    private let loop: SocketLoop
    private let limits: OriginLimits
    private let setup: HandshakeSetup
    private let tls: TLSContext?
    /// The time after which a read is sent to a replica.
    private let milliseconds: Int
    private weak var owner: (any RedisServerOwner)?
    /// The replicas of each range of slots, and for each slot the index of its range (-1 for none).
    private var replicasOfRange: [[OriginEndpoint]] = []
    private var rangeOfSlot: [Int] = []
    /// The connections to replicas. Each is made on its first use.
    private var links: [OriginEndpoint: RedisLink] = [:]
    /// The running reads in order, each with the monotonic time, in nanoseconds, at which it is sent to replicas too.
    private var reads = Deque<(due: Int64, call: RedisCall)>()
    private var timer: LoopTimer?
    private var tasksUnderWay = 0

    init(_ loop: SocketLoop, _ settings: RedisSettings, owner: any RedisServerOwner) {
        self.loop = loop
        self.owner = owner
        limits = settings.limits
        tls = settings.tls
        milliseconds = max(1, settings.secondReadAfter ?? 1)
        var setup = settings.setup
        setup.tracking = .none
        setup.isReadOnly = true
        self.setup = setup
        timer = LoopTimer(loop) { [weak self] in self?.askForOverdue() }
    }

    /// Closes all connections. May be called repeatedly.
    func close() {
        timer?.stop()
        timer = nil
        owner = nil
        reads.takeAll()
        for link in links.values { link.close() }
        links = [:]
    }

    /// Uses the replicas in a new slot map.
    func use(_ map: SlotMap) {
        replicasOfRange = map.ranges.map(\.replicas)
        rangeOfSlot = Array(repeating: -1, count: HashSlot.count)
        for (index, range) in map.ranges.enumerated() {
            for slot in range.slots { rangeOfSlot[slot] = index }
        }
        let known = Set(replicasOfRange.joined())
        for (endpoint, link) in links where !known.contains(endpoint) {
            links[endpoint] = nil
            link.close()
        }
    }

    // MARK: Reads

    /// Schedules a read to be sent to replicas too. Ignores calls that are not reads.
    func note(_ call: RedisCall) {
        guard call is RedisReadCall else { return }
        dropDone()
        reads.append((MonotonicClock.nanoseconds() + Int64(milliseconds) * 1_000_000, call))
        if reads.count == 1 { timer?.start(milliseconds: milliseconds) }
    }

    private func dropDone() { while reads.first?.call.isDone == true { _ = reads.popFirst() } }

    private func askForOverdue() {
        let now = MonotonicClock.nanoseconds()
        while let first = reads.first, first.call.isDone || first.due <= now {
            _ = reads.popFirst()
            for task in first.call.tasks { ask(task) }
        }
        guard let first = reads.first else { return }
        timer?.start(milliseconds: Int((first.due - now) / 1_000_000) + 1)
    }

    /// Sends the read of a task to a replica.
    /// - Parameter error: the primary's error, reported if the replica fails too; nil if the primary may still reply.
    /// - Returns: whether the read was sent.
    @discardableResult
    func ask(_ task: RedisTask, insteadOf error: OriginError? = nil) -> Bool {
        guard case .read(let call, let index) = task.work, call.isMissing(index), let slot = task.slot,
            tasksUnderWay < limits.callsWaiting, let link = link(for: slot)
        else { return false }
        let second = RedisTask(task.work, slot: slot)
        second.key = task.key
        second.isSecond = true
        second.firstError = error
        second.owner = self
        tasksUnderWay += 1
        link.send(second)
        return true
    }

    private func link(for slot: Int) -> RedisLink? {
        guard rangeOfSlot.indices.contains(slot), rangeOfSlot[slot] >= 0,
            let endpoint = replicasOfRange[rangeOfSlot[slot]].randomElement()
        else { return nil }
        if let link = links[endpoint] { return link }
        let link = RedisLink(loop, endpoint, setup, limits, tls: tls, user: nil)
        links[endpoint] = link
        link.open()
        return link
    }

    // MARK: Answers

    var invalidationSequence: UInt64 { 0 }

    func taskAnswered(_ task: RedisTask) {
        tasksUnderWay -= 1
        owner?.replicaAnswered(task)
        endFirst(task)
    }

    func taskFailed(_ task: RedisTask, _ error: OriginError) {
        tasksUnderWay -= 1
        endFirst(task)
    }

    /// If the read from the primary has failed too, fails the read of the key, unless it already has a result.
    private func endFirst(_ task: RedisTask) {
        guard let error = task.firstError, case .read(let call, let index) = task.work else { return }
        call.answer(index, .failure(error))
    }
}
