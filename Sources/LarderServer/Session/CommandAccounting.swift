import CommandCatalog
import LarderEngine
import RESP

/// Commands that took their short way, which are not counted one by one.
struct QuickCounts {
    var get = 0
    var set = 0
    var ping = 0
    var mget = 0
    var exists = 0
    /// How much quick work may still be done under the time that was read last: a command counts as one, and each
    /// KiB that it copies as one more.
    var workLeft = 0
    /// What one of them takes, as far as is known.
    var nanosecondsEach: Int64 = 0
    /// Runs of the session, to choose those that are timed.
    var runs = 0

    /// Takes some tens of microseconds.
    static let workPerTime = 64
}

/// What CLIENT REPLY has set.
enum ReplyMode {
    case on, off
    /// The next command gets no reply.
    case skipsNext
    /// This one gets none.
    case skipping
}

/// A deferred command, for when its work is done.
struct PendingNote {
    let spec: CommandSpec
    /// Nil where the words are the parser's.
    let command: QueuedCommand?
    /// Where its reply begins; nil inside a transaction.
    let start: Int?
}

/// Nanoseconds of the monotonic clock.
func nanoseconds() -> Int64 {
    var time = timespec()
    clock_gettime(CLOCK_MONOTONIC, &time)
    return Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec)
}

/// What is counted, timed and shown of a session's commands.
extension Session {
    // MARK: Counting

    /// One run of the session in so many is timed: what the quick commands of the others took is taken to be the same.
    private static let runsPerSample = 16

    /// - Returns: when this run began, if it is one that is timed; else 0.
    func beginSample() -> Int64 {
        quickMemory.pointee.runs &+= 1
        return quickMemory.pointee.runs % Self.runsPerSample == 1 ? nanoseconds() : 0
    }

    /// Counts what a run of the session did.
    /// - Parameters:
    ///   - count: all commands.
    ///   - sample: what ``beginSample()`` gave.
    func noteRun(_ count: Int, _ now: Int64?, _ sample: Int64) {
        counter.total.add(count)
        let quick = quickMemory.pointee
        let quickCount = quick.get + quick.set + quick.ping + quick.mget + quick.exists
        if quickCount > 0 {
            // Where others ran too, the time is theirs as well.
            if sample != 0, quickCount == count {
                quickMemory.pointee.nanosecondsEach = max(0, nanoseconds() - sample) / Int64(quickCount)
            }
            note(CommandTable.quick.get, quick.get)
            note(CommandTable.quick.set, quick.set)
            note(CommandTable.quick.ping, quick.ping)
            note(CommandTable.quick.mget, quick.mget)
            note(CommandTable.quick.exists, quick.exists)
            quickMemory.pointee.get = 0
            quickMemory.pointee.set = 0
            quickMemory.pointee.ping = 0
            quickMemory.pointee.mget = 0
            quickMemory.pointee.exists = 0
        }
        if let now { record.lastActivity.store(now, ordering: .relaxed) }
        record.outputBytes.store(replies.count, ordering: .relaxed)
    }

    private func note(_ number: Int, _ count: Int) {
        guard count > 0 else { return }
        counter.ran(number, times: count, nanosecondsEach: quickMemory.pointee.nanosecondsEach)
        record.lastCommand.store(number, ordering: .relaxed)
    }

    /// Counts a command that ran, and logs it if it took long.
    func note(_ spec: CommandSpec, _ call: Call, nanoseconds: Int64, failed: Bool) {
        note(spec, nanoseconds, failed, call.count) { call.bytes($0) }
    }

    private func note(
        _ spec: CommandSpec, _ nanoseconds: Int64, _ failed: Bool, _ count: Int, _ word: (Int) -> UnsafeRawBufferPointer
    ) {
        counter.ran(spec.number, nanoseconds: nanoseconds, failed: failed)
        record.lastCommand.store(spec.number, ordering: .relaxed)
        let microseconds = nanoseconds / 1000
        if microseconds >= 1000 {
            server.latency.note(
                spec.flags.contains(.fast) ? "fast-command" : "command", time: server.engine.now() / 1000,
                milliseconds: microseconds / 1000)
        }
        guard server.slowLog.takes(microseconds: microseconds), !spec.flags.contains(.skipSlowlog) else { return }
        let secrets = Self.secrets(spec, count, word)
        server.slowLog.add(
            time: server.engine.now() / 1000, microseconds: microseconds, count: count,
            word: { secrets.contains($0) ? Self.redacted : word($0) }, address: record.address, name: name)
    }

    /// Whether deferred work may be left undone where the connection is gone: somebody would have read its reply, and no
    /// transaction is halfway through.
    var mayDropWork: Bool {
        guard let spec = pendingNote?.spec, execution == nil else { return false }
        return !isSilent || !spec.flags.contains(.write)
    }

    /// Counts a deferred command whose work is done, and ends it.
    func notePending(_ result: WorkResult) {
        guard let pending = pendingNote else { return }
        pendingNote = nil
        if let failure = result.failure { server.errors.count(failure.bytes) }
        let failed = result.failure != nil
        if let command = pending.command {
            note(pending.spec, result.nanoseconds, failed, command.count) { command[$0] }
        } else {
            note(pending.spec, result.nanoseconds, failed, parser.argumentCount) { parser.argument($0) }
        }
        if let start = pending.start { endCommand(start) }
    }

    /// Tells the record what is not told as commands run.
    func noteRecord() {
        record.protocolVersion.store(replies.version.rawValue, ordering: .relaxed)
        record.inputBytes.store(parser.bufferedBytes, ordering: .relaxed)
    }

    func noteTransaction() {
        noteMode()
        record.queuedCommands.store(transaction?.commands.count ?? -1, ordering: .relaxed)
        record.queuedBytes.store(transaction?.byteCount ?? 0, ordering: .relaxed)
    }

    /// Whether nothing was sent for so many milliseconds, and nothing is to be sent to the client either.
    func isIdle(for milliseconds: Int64) -> Bool {
        subscriptions == nil && !isMonitoring
            && server.engine.now() - record.lastActivity.load(ordering: .relaxed) > milliseconds
    }

    // MARK: MONITOR

    var isMonitoring: Bool { record.isMonitor.load(ordering: .relaxed) }

    func beginMonitoring() {
        server.monitors.add(subscriber)
        record.isMonitor.store(true, ordering: .relaxed)
        server.noteAttention()
    }

    func endMonitoring() {
        guard record.isMonitor.exchange(false, ordering: .relaxed) else { return }
        server.monitors.remove(id)
        server.noteAttention()
    }

    /// Refuses commands on entries to a connection that monitors, in Redis' words, to which it counts as a replica.
    func checkMonitoring(_ spec: CommandSpec) throws(CommandError) {
        guard isMonitoring else { return }
        if !spec.flags.isDisjoint(with: [.write, .readonly, .publishes]) {
            throw CommandError("ERR Replica can't interact with the keyspace")
        }
    }

    /// Shows a command to who monitors.
    func show(_ spec: CommandSpec, _ call: Call) {
        // As in Redis, administration is not shown.
        guard !spec.flags.contains(.admin) else { return }
        let secrets = Self.secrets(spec, call.count) { call.bytes($0) }
        let line = Monitors.line(
            now: call.now, database: database.name, address: "unix:\(server.socketPath)", count: call.count
        ) { secrets.contains($0) ? Self.redacted : call.bytes($0) }
        server.monitors.show(line, except: replyMode == .on && !isClosing ? nil : id)
    }

    /// Settings that Redis does not show either: passwords, and the names that go with them.
    private static let secretSettings: [StaticString] = [
        "REQUIREPASS", "MASTERAUTH", "MASTERUSER", "TLS-KEY-FILE-PASS", "TLS-CLIENT-KEY-FILE-PASS",
    ]

    /// Which words may be a name and its password. Where CONFIG SET names a secret, all behind it count as one.
    private static func secrets(
        _ spec: CommandSpec, _ count: Int, _ word: (Int) -> UnsafeRawBufferPointer
    ) -> Range<Int> {
        switch spec.metadata.secrets {
        case .none: return 0..<0
        case .all: return 1..<max(1, count)
        case .ofSecretSettings:
            let first = stride(from: 2, to: count, by: 2).first { index in
                secretSettings.contains { equalsIgnoringCase(word(index), $0) }
            }
            return first.map { min($0 + 1, count)..<count } ?? 0..<0
        case .afterAUTH:
            var index = 2
            while index < count {
                if equalsIgnoringCase(word(index), "AUTH") { return index + 1..<min(index + 3, count) }
                index += equalsIgnoringCase(word(index), "SETNAME") ? 2 : 1
            }
            return 0..<0
        }
    }

    private static var redacted: UnsafeRawBufferPointer {
        // Stands in the program's constants.
        let text: StaticString = "(redacted)"
        return UnsafeRawBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount)
    }

    // MARK: CLIENT PAUSE and REPLY

    /// Whether a command has to wait for the end of CLIENT PAUSE.
    func isPaused(_ spec: CommandSpec) -> Bool {
        guard server.hasAttention.load(ordering: .relaxed) else { return false }
        let isWrite =
            !spec.flags.isDisjoint(with: [.write, .publishes])
            || spec.flags.contains(.runsTransaction)
                && transaction?.commands.contains { $0.spec.flags.contains(.write) } == true
        return server.pause.holds(isWrite: isWrite, now: server.engine.monotonic())
    }

    /// Whether the command that runs gets no reply.
    var isSilent: Bool { replyMode == .off || replyMode == .skipping || replyMode == .skipsNext }

    /// Ends a command whose reply begins at `start`: takes the reply back where CLIENT REPLY forbids it.
    func endCommand(_ start: Int) {
        defer { keepsReply = false }
        guard replyMode != .on else { return }
        // What was sent already cannot be taken back: the header of a long transaction.
        if !keepsReply { replies.removeLast(max(0, sentBytes + replies.count - max(start, sentBytes))) }
        switch replyMode {
        case .skipsNext: replyMode = .skipping
        case .skipping: replyMode = .on
        case .on, .off: break
        }
    }
}

extension CommandTable {
    /// The numbers of the commands that have short ways.
    static let quick: (get: Int, set: Int, ping: Int, mget: Int, exists: Int) = (
        spec(.get).number, spec(.set).number, spec(.ping).number, spec(.mget).number, spec(.exists).number
    )
}
