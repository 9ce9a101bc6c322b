import CLarderLuaBridge
import LarderCommandCatalog
import LarderEngine
import LarderPlatform
import LarderRESP

/// The host of a running script: executes the commands that the script calls.
///
/// A script first runs in memory, on an ``Update`` of its declared keys. There, a call that needs more stops the
/// script. Its changes are then dropped, and it starts again in a transaction, which can execute all commands.
///
/// A struct, so that a script in memory needs no allocation. The functions that run for each call are mutating, because
/// Swift would copy the struct for others. Used only on the thread that runs the script.
struct ScriptHost {
    private let session: Session
    /// Not reference-counted: all event loops would change the same counter.
    private unowned(unsafe) let server: ServerState
    private let now: Int64
    private let isReadOnly: Bool
    /// The entries of the declared keys, if the script runs in memory; otherwise nil.
    private let entries: Update?
    /// The transaction in which the script runs, and this attempt to run it; nil in memory.
    private let execution: Execution?
    private let run: TransactionRun?
    /// The commands called so far, for a replay with locks; nil if the script already runs with locks.
    private let record: ScriptRecord?
    /// The ``AccessControl/generation`` in which the user may run every command that the script can call; -1 if each
    /// call must be checked.
    private let trustedGeneration: Int
    /// In a transaction, the position of the script's results in the reply buffer. Each result is removed after the
    /// script has read it.
    private var base = 0
    private let version: RESPVersion
    /// The connection's database before the script ran; nil in memory.
    private var selected: Database?
    /// When the script began, in nanoseconds of the monotonic clock. In memory, the time of the first call of
    /// `interrupt`, and 0 before that call.
    private var begin: Int64 = 0
    /// The time limit in nanoseconds.
    private var slice = ScriptSlice.onLoop
    /// For a script in a MULTI transaction: the CPU time of the thread when the script started, in nanoseconds;
    /// otherwise nil. The time limit of such a script is CPU time, not elapsed time.
    private var beginOfCPU: Int64?
    /// The number of lines for clients that use MONITOR.
    private var shownCount = 0
    private static let shownMax = 1000
    private lazy var log = ScriptLog(server.scriptLines, of: session.logName)
    /// Whether the last command must not be recorded, because a replay of the script cannot check its result.
    private var isUnrepeatable = false

    /// Creates the host of a script in memory. For connections whose ``Prechecks`` allow all commands with keys.
    init(_ session: Session, _ entries: Update, now: Int64, isReadOnly: Bool) {
        (self.session, self.entries, self.now, self.isReadOnly) = (session, entries, now, isReadOnly)
        (execution, run, record) = (nil, nil, nil)
        server = session.server
        trustedGeneration = session.rights.generation
        version = session.replyMemory.pointee.version
    }

    /// Creates the host of a script in a transaction.
    /// - Parameter record: the record to fill, if the script runs without locks.
    init(
        _ session: Session, _ execution: Execution, _ run: TransactionRun, now: Int64, isReadOnly: Bool,
        record: ScriptRecord? = nil
    ) {
        (self.session, self.now, self.isReadOnly) = (session, now, isReadOnly)
        (entries, self.execution, self.run, self.record) = (nil, execution, run, record)
        server = session.server
        trustedGeneration = session.rights.current == nil ? session.rights.generation : -1
        (base, version) = (session.replies.count, session.replies.version)
        selected = session.database
        begin = MonotonicClock.nanoseconds()
        guard let progress = execution.script else {
            beginOfCPU = ThreadClock.nanoseconds()
            slice = Limits.scriptInTransactionMilliseconds * 1_000_000 - execution.scriptTime
            return
        }
        slice = progress.heldSlice ?? (session.thread.isOnLoop ? ScriptSlice.onLoop : ScriptSlice.blocking)
    }

    /// Runs a script.
    /// - Parameter words: the words of the script's call.
    mutating func run(
        _ script: ScriptCall, _ words: CallWords, in interpreter: Interpreter
    ) throws(CommandError) -> Interpreter.End {
        let function = try interpreter.compile(script.script.code)
        defer {
            if let execution {
                end()
                execution.script?.lastRun = MonotonicClock.nanoseconds() - begin
                execution.scriptTime += timeOfCPU
            }
        }
        let (count, version) = (words.count - ScriptCall.firstKey, version)
        let bytesMax = min(server.limits.replyBytesMax, server.limits.scriptMemoryMax)
        return withUnsafeTemporaryAllocation(of: larder_script_word.self, capacity: max(1, count)) { copies in
            for index in 0..<count { copies[index] = larder_script_word(words.bytes(ScriptCall.firstKey + index)) }
            return withFunctions { functions in
                interpreter.run(
                    function, of: script.script, UnsafeBufferPointer(rebasing: copies[..<count]), script.keyCount,
                    version, replyBytesMax: bytesMax, functions)
            }
        }
    }

    /// Ends a script in a transaction: removes the last result, and restores the connection's protocol version and
    /// database.
    private func end() {
        clear()
        session.replyMemory.pointee.version = version
        if let selected, session.database !== selected { session.select(selected) }
    }

    /// The CPU time that a script in a MULTI transaction has used, in nanoseconds; 0 for other scripts.
    private var timeOfCPU: Int64 { beginOfCPU.map { ThreadClock.nanoseconds() - $0 } ?? 0 }

    // MARK: Commands

    /// The encoded result of the last call in a transaction. It is valid until the next call.
    private var encoded: UnsafeRawBufferPointer {
        let base = base
        return session.replyMemory.pointee.withBytes { UnsafeRawBufferPointer(rebasing: $0[base...]) }
    }

    /// Removes the result of the last call.
    private func clear() { session.replies.removeLast(session.replies.count - base) }

    /// Runs a command that the script has called.
    /// - Parameter answer: set to the result. Its bytes are valid until the next call: the script copies them before it
    ///   calls another command.
    /// - Returns: the reason why the script must stop; nil if it may continue.
    private mutating func call(
        _ source: CallWords.Source, _ version: RESPVersion, _ answer: inout larder_script_answer
    ) -> ScriptEnding? {
        if run != nil {
            if let interruption { return interruption }
            clear()
            session.replyMemory.pointee.version = version
            isUnrepeatable = false
        }
        var words = CallWords(source: source, row: nil, server: server, now: now)
        do throws(CommandError) {
            let spec = try find(words)
            words.row = spec.metadata
            if let entries { return try perform(spec, words, on: entries, &answer) ? nil : .abandoned }
            try perform(spec, words)
        } catch {
            guard let run, run.missing.isEmpty, !run.mustLeave else { return .abandoned }
            clear()
            session.replyMemory.pointee.error(error.bytes)
        }
        answer.take(encoded)
        guard record != nil, !isUnrepeatable else { return nil }
        return note(words, version)
    }

    /// Finds a command by its words. Throws if scripts must not call it.
    private mutating func find(_ words: CallWords) throws(CommandError) -> CommandSpec {
        guard var spec = CommandTable.find(words.bytes(0)) else {
            guard let subject = CommandTable.absentType(of: words.text(0)) else {
                throw CommandError("ERR Unknown Redis command called from script")
            }
            throw CommandError(
                "ERR Unknown Redis command called from script (there are no \(subject): Larder stores strings only)")
        }
        if !spec.subcommands.isEmpty, words.count > 1 {
            guard let found = spec.subcommand(named: words.text(1)) else {
                throw CommandError("ERR Unknown Redis command called from script")
            }
            spec = found
        }
        let row = spec.metadata
        try checkRights(row, words)
        guard row.accepts(argumentCount: words.count) else {
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

    /// Throws if the user may not run a command. The access rules may have changed while the script was running. If so,
    /// the new rules apply to this call.
    private mutating func checkRights(_ row: CommandMetadata, _ words: CallWords) throws(CommandError) {
        if server.disabledCommands.isEmpty,
            server.access.generation.load(ordering: .acquiring) == trustedGeneration
        {
            return
        }
        // A script in memory starts again in a transaction.
        guard run != nil else { throw Self.worksOnMore }
        if server.disabledCommands.contains(row) { throw session.rights.refuseDisabled(row, .lua) }
        session.renewRights()
        try session.rights.check(row, count: words.count, selected: session.database.name, .lua) { words.bytes($0) }
    }

    /// Runs a command in memory.
    /// - Returns: false if the command needs a transaction.
    private mutating func perform(
        _ spec: CommandSpec, _ words: CallWords, on entries: Update, _ answer: inout larder_script_answer
    ) throws(CommandError) -> Bool {
        entries.origin.tag = spec.metadata.tag.rawValue
        guard let plan = try spec.planner.plan(words), let result = plan.perform(on: entries, words),
            answer.take(result)
        else { return false }
        session.accounting.noteScriptCall(spec.metadata, 0, failed: false)
        return true
    }

    /// Runs a command in the script's transaction, and writes its result to the reply buffer.
    private mutating func perform(_ spec: CommandSpec, _ words: CallWords) throws(CommandError) {
        let row = spec.metadata
        session.tracking.willUse(row, count: words.count, after: session.replyQueue.lastTicket) { words.bytes($0) }
        let begin = MonotonicClock.nanoseconds()
        var call = Call(session, words, mayBlock: false, run: run)
        var failed = true
        // A recorded command is counted when it is replayed.
        defer {
            if record == nil {
                session.accounting.noteScriptCall(row, MonotonicClock.nanoseconds() - begin, failed: failed)
            }
        }
        switch try spec.run(&call) {
        case .done: break
        case .deferred(let work): try perform(work, row)
        case .close, .waits: throw Self.worksOnMore
        }
        failed = false
        show(words)
    }

    /// Shows a command to clients that use MONITOR, when the script's changes have been applied.
    private mutating func show(_ words: CallWords) {
        guard record == nil, !server.monitors.isEmpty, shownCount < Self.shownMax,
            !session.record.isUnlogged.load(ordering: .relaxed)
        else { return }
        shownCount += 1
        run?.shown.append(
            Monitors.line(now: now, database: session.database.name, address: "lua", count: words.count) {
                words.bytes($0)
            })
    }

    /// Runs the deferred work of a command that lists or counts keys. Only scripts without locks can call such
    /// commands. A replay of the script does not check the result.
    private mutating func perform(_ work: DeferredWork, _ row: CommandMetadata) throws(CommandError) {
        guard Self.lists.contains(row), execution?.script != nil else { throw Self.worksOnMore }
        guard record != nil else {
            run?.leaveToScriptThread()
            throw Self.worksOnMore
        }
        _ = try work(&session.replyMemory.pointee)
        isUnrepeatable = true
    }

    private static let lists: Set<CommandMetadata> = [.keys, .scan, .dbsize, .randomkey, .query, .explain]

    private static let worksOnMore = CommandError(
        "ERR This Redis command is not allowed from script (it works on more than single keys)")

    // MARK: Recording

    private func note(_ words: CallWords, _ version: RESPVersion) -> ScriptEnding? {
        guard let record, let row = words.row else { return nil }
        let isOfEntries = row.keys.first > 0
        // Commands such as TIME neither use entries nor change anything. They need not be replayed.
        guard isOfEntries || row.database.isSelection || !row.flags.isDisjoint(with: [.write, .pubsub, .publishes])
        else { return nil }
        let room = server.limits.transactionBytesMax - record.byteCount
        guard let copy = QueuedCommand(row, count: words.count, bytesMax: room, word: { words.bytes($0) }) else {
            return .tooMuch
        }
        record.byteCount += copy.byteCount
        record.commands.append(copy)
        // Do not check results of commands without keys. For example, the number of subscribers may differ in the
        // replay.
        record.answers.append(isOfEntries ? ScriptRecord.Answer(encoded) : nil)
        record.versions.append(version)
        return nil
    }

    /// Runs the recorded commands again, with locks held.
    /// - Returns: whether each command has returned the recorded result.
    mutating func replay(_ record: ScriptRecord) -> Bool {
        defer { end() }
        var answer = larder_script_answer()
        for (index, command) in record.commands.enumerated() {
            if call(.queued(.passUnretained(command)), record.versions[index], &answer) != nil { return false }
            // Stop if rights have changed: a SELECT may have failed, and the next commands would use a wrong database.
            guard session.rights.generation == record.rightsGeneration else { return false }
            guard let expected = record.answers[index] else { continue }
            guard ScriptRecord.Answer(encoded) == expected else { return false }
        }
        return true
    }

    // MARK: Time

    /// The reason why the script must stop now; nil if it may continue.
    private var interruption: ScriptEnding? {
        mutating get {
            let time = MonotonicClock.nanoseconds()
            if begin == 0 { begin = time }
            guard record != nil else {
                guard time - begin > slice, beginOfCPU == nil || timeOfCPU > slice else { return nil }
                return leave()
            }
            guard let progress = execution?.script else { return nil }
            if progress.killSwitch.isKilled.load(ordering: .relaxed) || session.record.isGone { return .killed }
            if time - progress.begin > server.limits.scriptMilliseconds * 1_000_000 { return .timedOut }
            return nil
        }
    }

    /// Stops a script that runs with locks, before long work. It then starts again without locks, and does not delay
    /// other clients.
    private func leave() -> ScriptEnding? {
        guard let run, let execution else { return .abandoned }
        if record != nil { return nil }
        guard let progress = execution.script else { return .tooLongInTransaction }
        if case .replaying = progress.stage { return nil }
        run.leaveToScriptThread()
        return .abandoned
    }
}

extension ScriptHost {
    /// Calls `body` with the callbacks for the interpreter. The callbacks are valid only during this call.
    mutating func withFunctions<Result>(_ body: (UnsafePointer<larder_script_host>) -> Result) -> Result {
        withUnsafeMutablePointer(to: &self) { host in
            let functions = larder_script_host(
                context: UnsafeMutableRawPointer(host),
                call: { context, words, count, version, answer in
                    guard let host = ScriptHost.of(context), let answer else { return ScriptEnding.abandoned.rawValue }
                    let words = UnsafeBufferPointer(start: words, count: count)
                    let version: RESPVersion = version == 3 ? .three : .two
                    return host.pointee.call(.script(words), version, &answer.pointee)?.rawValue ?? 0
                },
                interrupt: { ScriptHost.of($0)?.pointee.interruption?.rawValue ?? 0 },
                weigh: { ScriptHost.of($0)?.pointee.leave()?.rawValue ?? 0 },
                log: { context, level, text, count in
                    let text = UnsafeRawBufferPointer(start: text, count: count)
                    ScriptHost.of(context)?.pointee.log.add(Int(level), text)
                },
                knows: larder_script_host.knowsCommand, sha1: larder_script_host.hashesText)
            return withUnsafePointer(to: functions, body)
        }
    }

    private static func of(_ context: UnsafeMutableRawPointer?) -> UnsafeMutablePointer<ScriptHost>? {
        context?.assumingMemoryBound(to: ScriptHost.self)
    }
}

extension larder_script_answer {
    /// Sets the answer to an encoded reply.
    fileprivate mutating func take(_ encoded: UnsafeRawBufferPointer) {
        kind = LARDER_ANSWER_ENCODED
        bytes = encoded.baseAddress?.assumingMemoryBound(to: UInt8.self)
        count = encoded.count
    }

    /// Sets the answer to the result of a command in memory.
    /// - Returns: false for kinds of results that ``EntryPlan/perform(on:_:)`` does not return.
    fileprivate mutating func take(_ result: ChangeReply) -> Bool {
        switch result {
        case .payload(let payload):
            take(payload)
            kind = LARDER_ANSWER_STRING
        case .integer(let number):
            kind = LARDER_ANSWER_INTEGER
            integer = number
        case .ok: kind = LARDER_ANSWER_OK
        case .null: kind = LARDER_ANSWER_NULL
        case .text, .bulk, .record, .written: return false
        }
        return true
    }
}
