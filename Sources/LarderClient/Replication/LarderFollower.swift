import LarderPlatform
import LarderRESP
import LarderVocabulary

/// Replicates the changes of a database to the database of the same name in another larder. Works in one direction; two
/// followers keep two larders in sync.
///
/// ```swift
/// let follower = try LarderFollower(from: source, to: target, ReplicationOptions(database: "shop"))
/// while try follower.step() != .idle {}          // until both have the same entries
/// try await follower.run()                       // until the task is cancelled
/// ```
///
/// Each entry keeps its storage time, its deadline rule, its grace, its codec and its tags. The follower stores its
/// position in the target, in the database `_replication`, after it has applied the changes. After any interruption,
/// including restarts of either larder, this or another follower resumes from that position. If the source was
/// replaced, or no longer has the changes since the position, the follower starts with a full pass over all entries.
/// The target then loses entries that the source no longer has, and gets indexes of the source that it lacks.
///
/// Use a follower's clients for nothing else. After an error call ``step(waitMilliseconds:)`` again, or create another
/// follower.
///
/// Thread-safe: steps of several threads run one after the other.
public final class LarderFollower: Sendable {
    private let source: BlockingLarderClient
    private let target: FollowerTarget
    private let options: ReplicationOptions
    private let key: [UInt8]
    /// The keys under which the source may store its own position as a follower of the target.
    private let backKeys: [[UInt8]]
    /// Held during a step: only one step runs at a time, and only steps change the two values below.
    private let turn = Lock()
    private let lastMark = Locked<ReplicationMark?>(nil)
    private let lastProgress = Locked(ReplicationProgress())
    private let ending = EndSignal()

    /// The position of this follower and its times; nil if they must be read from the target.
    private var mark: ReplicationMark? {
        get { lastMark.withLock { $0 } }
        set { lastMark.withLock { $0 = newValue } }
    }

    /// The database in which a target stores the positions of its followers.
    package static var positionsDatabase: String { ReplicationMark.database }

    /// The progress of the follower.
    public private(set) var progress: ReplicationProgress {
        get { lastProgress.withLock { $0 } }
        set { lastProgress.withLock { $0 = newValue } }
    }

    /// Creates a follower. Checks both larders, and changes nothing.
    /// - Parameters:
    ///   - source: a client of the larder to follow. The client's time limit must be longer than the waits of
    ///     ``step(waitMilliseconds:)``.
    ///   - target: a client of the larder that receives the changes and stores the position.
    ///   - options: the changes to replicate.
    ///   - rule: resolves conflicts if both larders have changed an entry.
    /// - Throws: `invalidArgument` if an option is invalid, or both clients use the same larder; `server` if one of the
    ///   servers is not a larder that can be followed; errors of the clients' calls.
    public init(
        from source: BlockingLarderClient, to target: BlockingLarderClient, _ options: ReplicationOptions,
        rule: ReplicationRule = .later
    ) throws(LarderClientError) {
        guard (1...10_000).contains(options.batchCount) else {
            throw Self.refusal("batchCount is \(options.batchCount), and must be 1 to 10000")
        }
        do throws(TagRules.Impossible) {
            for tag in options.allTags { try TagRules.check(tag) }
        } catch {
            throw Self.refusal(error.message)
        }
        guard options.database != ReplicationMark.database else {
            throw Self.refusal("the database '\(options.database)' is reserved for the positions of followers")
        }
        guard !CompanionName.isOne(options.database) else {
            throw Self.refusal(CompanionName.refusal(options.database), options.database)
        }
        let (from, to) = (try Self.identity(of: source), try Self.identity(of: target))
        guard from.run != to.run else {
            throw Self.refusal("the source and the target are the same larder, \(from.name)")
        }
        self.source = source
        self.target = FollowerTarget(target, options, rule)
        self.options = options
        key = ReplicationMark.key(source: options.sourceName ?? from.name, options)
        let whole = ReplicationOptions(database: options.database)
        let name = options.targetName ?? to.name
        backKeys = [ReplicationMark.key(source: name, options), ReplicationMark.key(source: name, whole)]
        try source.select(options.database)
        try target.select(options.database)
    }

    /// Applies the next changes.
    /// - Parameter waitMilliseconds: how long to wait for a change if there is none. The time limit of the source's
    ///   client must be longer.
    /// - Returns: ``ReplicationProgress/State/idle`` if there are no more changes for now.
    @discardableResult
    public func step(waitMilliseconds: Int = 0) throws(LarderClientError) -> ReplicationProgress.State {
        turn.lock()
        defer { turn.unlock() }
        do throws(LarderClientError) {
            return try apply(nextAfterWaiting: waitMilliseconds)
        } catch {
            // It is unknown whether the step was applied, so the next step reads the position from the target.
            mark = nil
            throw error
        }
    }

    /// Applies changes, on a thread of its own, until ``shutdown()`` is called or the task is cancelled. The running
    /// step is completed, which takes at most about a second if there are no changes, and is interrupted after three
    /// seconds. While a daemon is not available, or the target has no space, steps are repeated with back-off, from
    /// 250 ms up to 10 s. Has the form that ServiceLifecycle's `Service` requires.
    /// - Throws: errors that a repetition does not fix, such as `invalidArgument`, and `closed` if one of the clients
    ///   was closed.
    public func run() async throws {
        if ending.isSet || Task.isCancelled { return }
        let (end, over, overLock) = (Latch(), Latch(), Lock())
        let result = Promise<Result<Void, LarderClientError>>()
        let thread = WorkThread(name: "larder-follow") { [self] in
            result.set(Result { () throws(LarderClientError) in try follow(until: end) })
        }
        let stop = { @Sendable [source, target] in
            end.set()
            // A daemon may answer no more.
            _ = Task<Void, Never>.delayed(milliseconds: Self.graceMilliseconds) {
                overLock.withLock {
                    if !over.wait(milliseconds: 0) { for client in [source, target.client] { client.interrupt() } }
                }
            }
        }
        let watch = Task { [ending] in
            await ending.wait()
            if !Task.isCancelled { stop() }
        }
        defer { watch.cancel() }
        let outcome = await withTaskCancellationHandler {
            await result.value()
        } onCancel: {
            stop()
        }
        overLock.withLock { over.set() }
        thread.join()
        for client in [source, target.client] { client.forgetInterruption() }
        try outcome.get()
    }

    /// How long a step may take after the end of the run, in milliseconds.
    private static let graceMilliseconds: Int64 = 3_000

    /// Makes ``run()`` end gracefully, now or when it is called. Returns at once.
    public func shutdown() { ending.set() }

    /// Whether a step may succeed later: the daemon cannot be reached, or its disk is full.
    static func mayRepeat(_ error: LarderClientError) -> Bool {
        [.noDaemon, .closed, .timeout, .io].contains(error.code)
            || error.code == .server && error.message.contains("No space left")
    }

    private func follow(until end: Latch) throws(LarderClientError) {
        let limit = source.session.timeoutMilliseconds
        let wait = limit == 0 ? 1_000 : max(1, min(1_000, limit / 2))
        var failures = 0
        while !end.wait(milliseconds: 0) {
            do throws(LarderClientError) {
                try step(waitMilliseconds: progress.state == .idle ? wait : 0)
                failures = 0
            } catch {
                guard Self.mayRepeat(error), !source.session.isClosed, !target.client.session.isClosed else {
                    throw error
                }
                end.wait(milliseconds: RetryBackoff.rest(after: failures, from: 250, to: 10_000))
                failures += 1
            }
        }
    }

    private func apply(nextAfterWaiting waitMilliseconds: Int) throws(LarderClientError) -> ReplicationProgress.State {
        var mark: ReplicationMark
        if let known = self.mark {
            mark = known
        } else {
            try checkTargetHasNoOrigin()
            mark = try ReplicationMark.read(target.client, key) ?? ReplicationMark()
            try source.select(options.database)
            try target.client.select(options.database)
            progress.everDone = mark.changes
        }
        let reply = try FeedReply(
            try source.command(
                bytes: FeedReply.words(
                    since: mark.position, prefix: options.prefix, count: options.batchCount,
                    blockMilliseconds: waitMilliseconds)))
        let before = mark
        if reply.reason != nil { try beginPass(&mark, at: reply.time) }
        if !reply.items.isEmpty, reply.time > mark.applied {
            // Write the time before applying the changes. Then the applied entries count as replicated, even if the
            // follower is interrupted before it writes their position.
            var ahead = mark
            ahead.applied = reply.time
            try ahead.write(target.client, key)
        }
        let counts = try target.apply(
            reply, reply.range == nil ? nil : mark.knownTimes, notifiedUntil: mark.isPeer ? mark.seen : nil)
        if reply.range != nil || !reply.items.isEmpty || reply.state == "current" {
            mark.applied = max(mark.applied, reply.time)
        }
        if let range = reply.range, range.through == nil {
            mark.isComplete = true
            mark.over = nil
        }
        // Subtract a margin, because a write gets its timestamp shortly before CHANGES reports the write.
        if reply.state == "current" { mark.seen = max(mark.seen, reply.time - Self.seenMargin) }
        mark.position = reply.position
        mark.changes += reply.items.count
        note(reply, counts, mark)
        // If the position has not changed, write the mark at most every 30 seconds, to store its newer times.
        let isRecent =
            before.isComplete && before.seen > 0 && mark.applied - before.applied <= Self.idleWriteMilliseconds
        if mark.position != before.position || !isRecent {
            try mark.write(target.client, key)
            self.mark = mark
        } else {
            self.mark = before
        }
        return progress.state
    }

    private static let seenMargin: Int64 = 10
    private static let idleWriteMilliseconds: Int64 = 30_000

    private func beginPass(_ mark: inout ReplicationMark, at time: Int64) throws(LarderClientError) {
        mark.passes += 1
        progress.passes += 1
        progress.total = progress.done + ((try? source.count()) ?? 0)
        if mark.isComplete {
            // If only the target has an entry, the source has removed the entry or not received it yet. The source has
            // received all entries that the target had up to the time `seen`.
            if let seen = try back()?.seen {
                (mark.over, mark.joined, mark.isPeer) = (seen, 0, true)
            } else {
                (mark.over, mark.isPeer) = (mark.applied, false)
            }
        } else if mark.applied == 0 {
            // All entries that an empty target gets during the pass are this follower's, so the pass may remove them.
            if try target.isEmpty() {
                mark.over = time
                try takePolicy()
            } else {
                // If the source follows the target, the user has already decided to merge the two.
                let isFollowed = try back() != nil
                guard options.joins || isFollowed else { throw refusal }
                mark.joined = max(1, time)
            }
        } else if let over = mark.over {
            mark.over = max(over, mark.applied)
        }
        // Ignore errors: the entries matter more, and if a daemon is not available, the next command throws.
        _ = try? target.client.create((try? source.indexes()) ?? [])
    }

    private static func refusal(_ message: String, _ database: String? = nil) -> LarderClientError {
        LarderClientError(.invalidArgument, message, operation: "replicate", database: database)
    }

    private var refusal: LarderClientError {
        Self.refusal(
            "the database '\(options.database)' of the target has entries and has never followed this source: it would "
                + "become a copy and lose them; to merge both instead, use larderctl replicate --join", options.database
        )
    }

    /// Throws if the target's database has an origin, because the origin determines its contents.
    private func checkTargetHasNoOrigin() throws(LarderClientError) {
        // Ignore errors: a user may have no permission for ORIGIN. If there is an origin, the first change is refused.
        guard let url = (try? target.client.originInfo())?.first?.1, !url.isEmpty else { return }
        throw Self.refusal(
            "the database '\(options.database)' of the target has an origin, \(url), so it cannot also follow a larder. "
                + "Leave the database out, or remove its origin first (larderctl origin "
                + "\(options.database) none)", options.database)
    }

    /// Copies the source's policy to a new database of the target. An existing database keeps its own policy.
    private func takePolicy() throws(LarderClientError) {
        guard try !target.client.databases().contains(where: { $0.name == options.database }) else { return }
        let info = try source.policyInfo()
        guard let policy = UpdatePolicy(info.policy) else { return }
        try target.client.setPolicy(
            policy, grace: .milliseconds(info.graceMilliseconds), jitter: Int(info.jitterPercent))
    }

    /// Returns how far the source has followed the target; nil if it does not follow the target.
    private func back() throws(LarderClientError) -> ReplicationMark? {
        for key in backKeys { if let mark = try ReplicationMark.read(source, key) { return mark } }
        return nil
    }

    private func note(_ reply: FeedReply, _ counts: FollowerTarget.Counts, _ mark: ReplicationMark) {
        progress.done += reply.items.count
        progress.stored += counts.stored
        progress.removed += counts.removed
        progress.kept += counts.kept
        progress.everDone = mark.changes
        let isInPass = reply.state == "scan"
        let isLastOfPass = reply.range.map { $0.through == nil } ?? false
        progress.state = isInPass && !isLastOfPass ? .initial : reply.state == "current" ? .idle : .running
        progress.total = progress.state == .idle ? progress.done : max(progress.total, progress.done)
    }

    /// Returns the identity of a larder: the path of its directory, or of its socket if the directory is unknown; and
    /// an ID that is unique to each start of a daemon.
    private static func identity(of client: BlockingLarderClient) throws(LarderClientError)
        -> (name: String, run: String)
    {
        let reply = try client.command(["CONFIG"] + ["GET", "dir"])
        let lines = try client.serverInfo(section: "server").split(whereSeparator: \.isNewline)
        return (
            reply.pairs?.first?.value.string ?? client.socketPath,
            lines.first { $0.hasPrefix("run_id:") }.map { String($0) } ?? client.socketPath
        )
    }
}
