import CLarderLuaBridge
import LarderCommandCatalog
import LarderEngine
import LarderPlatform
import LarderRESP

/// The commands that a running script can call, in its transaction.
///
/// Confined to the thread that runs the script.
final class ScriptHost {
    private let session: Session
    private let server: ServerState
    private let run: TransactionRun
    private let now: Int64
    private let isReadOnly: Bool
    private let progress: ScriptProgress?
    /// The command that the script calls; reused.
    private let command: QueuedCommand
    /// Where the script's results start in the reply buffer. Each result is removed after the script has read it.
    private let base: Int
    private let version: RESPVersion
    private let selected: Database
    private let begin: Int64
    private let slice: Int64
    /// For a script in a transaction, which is stopped after its time slice: the thread's CPU time at the start. The
    /// time of other threads does not count.
    private let beginOfCPU: Int64?
    /// The commands to show to monitoring connections, once they are applied.
    private(set) var shown: [[UInt8]] = []
    private static let shownMax = 1000
    private var log: ScriptLog
    /// Whether the last command must not be recorded: its result is not checked when the script is replayed.
    private var isUnrepeatable = false
    /// The recorded commands; nil with locks held.
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
            slice = session.isOnLoop ? ScriptSlice.onLoop : ScriptSlice.blocking
        }
    }

    /// The callbacks for the interpreter. Valid as long as this object exists.
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
                // The script copies the bytes before its next call.
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

    /// The time since the start, in nanoseconds.
    var duration: Int64 { MonotonicClock.nanoseconds() - begin }

    /// The CPU time used by a script in a transaction, in nanoseconds; 0 for others.
    var timeOfCPU: Int64 { beginOfCPU.map { ThreadClock.nanoseconds() - $0 } ?? 0 }

    // MARK: Commands

    /// The encoded result of the last call; valid until the next.
    var answer: UnsafeRawBufferPointer {
        let base = base
        return session.replyMemory.pointee.withBytes { UnsafeRawBufferPointer(rebasing: $0[base...]) }
    }

    /// Removes the last result.
    private func clear() { session.replies.removeLast(session.replies.count - base) }

    /// Restores the connection's state: removes the last result, and resets the protocol version and the database.
    func end() {
        clear()
        session.replyMemory.pointee.version = version
        if session.database !== selected { session.select(selected) }
    }

    /// Runs a command and writes its result.
    /// - Returns: the reason to stop the script; nil to continue.
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

    /// Finds a command that a script may call.
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
        if server.disabledCommands.contains(row) { throw session.refuseSwitchedOff(row, .lua) }
        // Changed access rules apply from this call on.
        session.renewRights()
        if session.rights != nil { try session.checkRights(row, count: count, in: .lua, word) }
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
        if session.modes.tracking != nil { session.willUse(row, count: command.count) { command[$0] } }
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
            if run.missing.isEmpty, !run.mustLeave { count(row, begin, failed: true) }
            throw error
        }
        noteShown(call)
    }

    /// Records a command for monitoring connections.
    private func noteShown(_ call: Call) {
        guard record == nil, !server.monitors.isEmpty, shown.count < Self.shownMax else { return }
        shown.append(
            Monitors.line(now: now, database: session.database.name, address: "lua", count: command.count) {
                command[$0]
            })
    }

    /// Runs the deferred part of a command that lists or counts keys. This is possible only in a script that holds no
    /// locks. The result is not checked again when the script's changes are applied.
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
        // Recorded commands are counted when they are replayed.
        guard record == nil else { return }
        session.accounting.counter.ran(
            row.number, nanoseconds: MonotonicClock.nanoseconds() - begin, failed: failed)
    }

    // MARK: Recording

    private func note(
        count: Int, _ version: RESPVersion, _ word: (Int) -> UnsafeRawBufferPointer
    ) -> ScriptEnding? {
        let row = command.row
        let isOfEntries = row.keys.first > 0
        // Commands such as TIME, which do not use entries and change nothing, need not be replayed.
        guard isOfEntries || row.database.isSelection || !row.flags.isDisjoint(with: [.write, .pubsub, .publishes])
        else { return nil }
        let copy = QueuedCommand(command.row, count: count, word: word)
        record?.byteCount += copy.byteCount
        guard let bytes = record?.byteCount, bytes <= server.limits.transactionBytesMax else { return .tooMuch }
        record?.commands.append(copy)
        // Do not record results of commands without keys: the number of a message's receivers may differ in the replay.
        record?.answers.append(isOfEntries ? ScriptRecord.Answer(answer) : nil)
        record?.versions.append(version)
        return nil
    }

    /// Replays recorded commands.
    /// - Returns: whether each returned the recorded result.
    func replay(_ record: ScriptRecord) -> Bool {
        for (index, recorded) in record.commands.enumerated() {
            if call(count: recorded.count, record.versions[index], { recorded[$0] }) != nil { return false }
            // If a SELECT is refused now, the following commands would run in another database.
            guard session.rightsGeneration == record.rightsGeneration else { return false }
            guard let expected = record.answers[index] else { continue }
            guard ScriptRecord.Answer(answer) == expected else { return false }
        }
        return true
    }

    // MARK: Time

    /// The reason to stop the script now; nil to continue.
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

    /// Abandons the attempt if it holds locks, so that the script can restart without locks, where it delays no other
    /// client.
    private func leave() -> ScriptEnding? {
        if record != nil { return nil }
        if case .replaying? = progress?.stage { return nil }
        guard progress != nil else { return .tooLongInTransaction }
        run.leaveToScriptThread()
        return .abandoned
    }
}
