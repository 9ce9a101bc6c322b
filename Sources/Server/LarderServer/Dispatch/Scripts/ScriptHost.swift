import CLarderLuaBridge
import LarderCommandCatalog
import LarderEngine
import LarderPlatform
import LarderRESP

/// The callbacks of a running script. They execute the commands that the script calls, in the script's transaction.
///
/// Used only on the thread that runs the script.
final class ScriptHost {
    private let session: Session
    private let server: ServerState
    private let run: TransactionRun
    private let now: Int64
    private let isReadOnly: Bool
    private let progress: ScriptProgress?
    /// The command that the script is calling. The object is reused for each call.
    private let command: QueuedCommand
    /// The position of the script's results in the reply buffer. Each result is removed after the script has read it.
    private let base: Int
    private let version: RESPVersion
    private let selected: Database
    private let begin: Int64
    private let slice: Int64
    /// For a script in a MULTI transaction: the CPU time of the thread when the script started, in nanoseconds;
    /// otherwise nil. The time limit of such a script is CPU time, not elapsed time.
    private let beginOfCPU: Int64?
    /// The lines for clients that use MONITOR. They are sent when the script's changes have been applied.
    private(set) var shown: [[UInt8]] = []
    private static let shownMax = 1000
    private var log: ScriptLog
    /// Whether the last command must not be recorded, because a replay of the script cannot check its result.
    private var isUnrepeatable = false
    /// The commands called so far, for a replay with locks; nil if the script already runs with locks.
    private(set) var record: ScriptRecord?

    init(
        _ session: Session, _ run: TransactionRun, now: Int64, isReadOnly: Bool, progress: ScriptProgress?,
        record: ScriptRecord? = nil
    ) {
        self.session = session
        server = session.server
        log = ScriptLog(session.server.scriptLines, of: session.logName)
        self.run = run
        self.now = now
        self.isReadOnly = isReadOnly
        self.progress = progress
        self.record = record
        command = QueuedCommand(borrowing: .eval)
        base = session.replies.count
        version = session.replies.version
        selected = session.database
        begin = MonotonicClock.nanoseconds()
        beginOfCPU = progress == nil ? ThreadClock.nanoseconds() : nil
        if let held = progress?.heldSlice {
            slice = held
        } else if progress == nil {
            let used = session.transactions.execution?.scriptTime ?? 0
            slice = Limits.scriptInTransactionMilliseconds * 1_000_000 - used
        } else {
            slice = session.thread.isOnLoop ? ScriptSlice.onLoop : ScriptSlice.blocking
        }
    }

    /// The callbacks for the interpreter. They are valid as long as this object exists.
    var functions: larder_script_host {
        larder_script_host(
            context: Unmanaged.passUnretained(self).toOpaque(),
            call: { context, words, count, version, answer in
                guard let host = ScriptHost.of(context), let answer else { return ScriptEnding.abandoned.rawValue }
                let version: RESPVersion = version == 3 ? .three : .two
                let words = UnsafeBufferPointer(start: words, count: count)
                if let ending = host.call(count: count, version, { UnsafeRawBufferPointer(words[$0]) }) {
                    return ending.rawValue
                }
                // These bytes are valid until the next call. The script copies them before it calls another command.
                let encoded = host.answer
                answer.pointee.kind = LARDER_ANSWER_ENCODED
                answer.pointee.bytes = encoded.baseAddress?.assumingMemoryBound(to: UInt8.self)
                answer.pointee.count = encoded.count
                return 0
            },
            interrupt: { ScriptHost.of($0)?.interruption?.rawValue ?? 0 },
            weigh: { ScriptHost.of($0)?.leave()?.rawValue ?? 0 },
            log: { context, level, text, count in
                ScriptHost.of(context)?.log.add(Int(level), UnsafeRawBufferPointer(start: text, count: count))
            },
            knows: larder_script_host.knowsCommand, sha1: larder_script_host.hashesText)
    }

    private static func of(_ context: UnsafeMutableRawPointer?) -> ScriptHost? {
        context.map { Unmanaged<ScriptHost>.fromOpaque($0).takeUnretainedValue() }
    }

    /// The time since the start of the script, in nanoseconds.
    var duration: Int64 { MonotonicClock.nanoseconds() - begin }

    /// The CPU time that a script in a MULTI transaction has used, in nanoseconds; 0 for other scripts.
    var timeOfCPU: Int64 { beginOfCPU.map { ThreadClock.nanoseconds() - $0 } ?? 0 }

    // MARK: Commands

    /// The encoded result of the last call. It is valid until the next call.
    var answer: UnsafeRawBufferPointer {
        let base = base
        return session.replyMemory.pointee.withBytes { UnsafeRawBufferPointer(rebasing: $0[base...]) }
    }

    /// Removes the result of the last call.
    private func clear() { session.replies.removeLast(session.replies.count - base) }

    /// Ends the script: removes the last result, and restores the connection's protocol version and database.
    func end() {
        clear()
        session.replyMemory.pointee.version = version
        if session.database !== selected { session.select(selected) }
    }

    /// Runs a command, and writes its result to the reply buffer.
    /// - Returns: the reason why the script must stop; nil if it may continue.
    func call(
        count: Int, _ version: RESPVersion, _ word: (Int) -> UnsafeRawBufferPointer
    ) -> ScriptEnding? {
        if let interruption { return interruption }
        clear()
        session.replyMemory.pointee.version = version
        isUnrepeatable = false
        do throws(CommandError) {
            let spec = try find(count: count, word)
            command.borrow(spec.metadata, count: count, word: word)
            try perform(spec)
        } catch {
            if !run.missing.isEmpty || run.mustLeave { return .abandoned }
            clear()
            session.replyMemory.pointee.error(error.bytes)
        }
        guard record != nil, !isUnrepeatable else { return nil }
        return note(count: count, version, word)
    }

    /// Finds a command by its words. Throws if scripts must not call it.
    private func find(count: Int, _ word: (Int) -> UnsafeRawBufferPointer) throws(CommandError) -> CommandSpec {
        guard var spec = CommandTable.find(word(0)) else {
            guard let subject = UnsupportedTypes.subject(of: String(decoding: word(0), as: UTF8.self)) else {
                throw CommandError("ERR Unknown Redis command called from script")
            }
            throw CommandError(
                "ERR Unknown Redis command called from script (there are no \(subject): Larder stores strings only)")
        }
        if !spec.subcommands.isEmpty, count > 1 {
            guard let found = spec.subcommand(named: String(decoding: word(1), as: UTF8.self)) else {
                throw CommandError("ERR Unknown Redis command called from script")
            }
            spec = found
        }
        let row = spec.metadata
        if server.disabledCommands.contains(row) { throw session.rights.refuseDisabled(row, .lua) }
        // The access rules may have changed while the script was running. If so, the new rules apply to this call.
        session.renewRights()
        if session.rights.current != nil {
            try session.rights.check(row, count: count, selected: session.database.name, .lua, word)
        }
        guard row.accepts(argumentCount: count) else {
            throw CommandError("ERR Wrong number of args calling Redis command from script")
        }
        guard row.flags.isDisjoint(with: [.noScript, .runsScript]) else {
            throw CommandError("ERR This Redis command is not allowed from script")
        }
        guard row.flags.isDisjoint(with: [.noMulti, .status]), !row.flags.isSuperset(of: [.write, .wholeDatabase])
        else { throw Self.worksOnMore }
        if isReadOnly, !row.flags.isDisjoint(with: [.write, .publishes]) {
            throw CommandError("ERR Write commands are not allowed from read-only scripts.")
        }
        return spec
    }

    private func perform(_ spec: CommandSpec) throws(CommandError) {
        let row = spec.metadata
        session.tracking.willUse(row, count: command.count, after: session.replyQueue.lastTicket) { command[$0] }
        let begin = MonotonicClock.nanoseconds()
        var call = Call(session, server, now: now, mayBlock: false, command: command, run: run)
        do throws(CommandError) {
            switch try spec.run(&call) {
            case .done: break
            case .deferred(let work): try perform(work, row)
            case .close, .waits: throw Self.worksOnMore
            }
            count(row, begin, failed: false)
        } catch {
            count(row, begin, failed: true)
            throw error
        }
        noteShown(call)
    }

    /// Records a command for clients that use MONITOR.
    private func noteShown(_ call: Call) {
        guard record == nil, !server.monitors.isEmpty, shown.count < Self.shownMax else { return }
        shown.append(
            Monitors.line(now: now, database: session.database.name, address: "lua", count: command.count) {
                command[$0]
            })
    }

    /// Runs the deferred work of a command that lists or counts keys. Only scripts without locks can call such
    /// commands. A replay of the script does not check the result.
    private func perform(_ work: DeferredWork, _ row: CommandMetadata) throws(CommandError) {
        guard Self.lists.contains(row), progress != nil else { throw Self.worksOnMore }
        guard record != nil else {
            run.leaveToScriptThread()
            throw Self.worksOnMore
        }
        _ = try work(&session.replyMemory.pointee)
        isUnrepeatable = true
    }

    private static let lists: Set<CommandMetadata> = [.keys, .scan, .dbsize, .randomkey]

    private static let worksOnMore = CommandError(
        "ERR This Redis command is not allowed from script (it works on more than single keys)")

    private func count(_ row: CommandMetadata, _ begin: Int64, failed: Bool) {
        // A recorded command is counted when it is replayed.
        guard record == nil else { return }
        run.scriptCalls.append((row.number, MonotonicClock.nanoseconds() - begin, failed))
    }

    // MARK: Recording

    private func note(
        count: Int, _ version: RESPVersion, _ word: (Int) -> UnsafeRawBufferPointer
    ) -> ScriptEnding? {
        let row = command.row
        let isOfEntries = row.keys.first > 0
        // Commands such as TIME neither use entries nor change anything. They need not be replayed.
        guard isOfEntries || row.database.isSelection || !row.flags.isDisjoint(with: [.write, .pubsub, .publishes])
        else { return nil }
        let room = server.limits.transactionBytesMax - (record?.byteCount ?? 0)
        guard let copy = QueuedCommand(row, count: count, bytesMax: room, word: word) else { return .tooMuch }
        record?.byteCount += copy.byteCount
        record?.commands.append(copy)
        // Do not check results of commands without keys. For example, the number of subscribers may differ in the
        // replay.
        record?.answers.append(isOfEntries ? ScriptRecord.Answer(answer) : nil)
        record?.versions.append(version)
        return nil
    }

    /// Runs the recorded commands again, with locks held.
    /// - Returns: whether each command has returned the recorded result.
    func replay(_ record: ScriptRecord) -> Bool {
        for (index, recorded) in record.commands.enumerated() {
            if call(count: recorded.count, record.versions[index], { recorded[$0] }) != nil { return false }
            // Stop if rights have changed: a SELECT may have failed, and the next commands would use a wrong database.
            guard session.rights.generation == record.rightsGeneration else { return false }
            guard let expected = record.answers[index] else { continue }
            guard ScriptRecord.Answer(answer) == expected else { return false }
        }
        return true
    }

    // MARK: Time

    /// The reason why the script must stop now; nil if it may continue.
    private var interruption: ScriptEnding? {
        let time = MonotonicClock.nanoseconds()
        guard record != nil else {
            guard time - begin > slice, beginOfCPU == nil || timeOfCPU > slice else { return nil }
            return leave()
        }
        guard let progress else { return nil }
        if progress.killSwitch.isKilled.load(ordering: .relaxed) || session.record.isGone {
            return .killed
        }
        if time - progress.begin > server.limits.scriptMilliseconds * 1_000_000 { return .timedOut }
        return nil
    }

    /// Stops a script that runs with locks. It then starts again without locks, and does not delay other clients.
    private func leave() -> ScriptEnding? {
        if record != nil { return nil }
        if case .replaying? = progress?.stage { return nil }
        guard progress != nil else { return .tooLongInTransaction }
        run.leaveToScriptThread()
        return .abandoned
    }
}
