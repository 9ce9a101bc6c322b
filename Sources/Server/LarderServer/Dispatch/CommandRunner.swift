import LarderCommandCatalog
import LarderEngine
import LarderPlatform
import LarderRESP

/// Finds and runs the received commands of a session.
///
/// This type has no state, so creating it costs nothing. Used only by the session's owner.
struct CommandRunner {
    /// The limits of a session's turn on a thread that may block. After the turn, other sessions get the thread.
    struct Slice {
        var commandsMax: Int
        /// No command starts after this time of the monotonic clock, in milliseconds.
        var until: Int64
        /// Whether the thread is the one that builds long values.
        var mayBuildLong = true
    }

    private let session: Session
    private var server: ServerState { session.server }
    private var accounting: CommandAccounting { session.accounting }

    init(_ session: Session) { self.session = session }

    /// Runs the received commands until there is a reason to pause. Begins with the current command, if there is one.
    /// - Parameters:
    ///   - outputBytesMax: no command starts while the unsent replies have more bytes than this.
    ///   - slice: how much work is allowed on a thread that may block; nil on an event loop, which must not block.
    func run(outputBytesMax: Int, slice: Slice? = nil) -> Pause {
        // Consecutive commands in memory share one reading of the clock, also those of several connections in a turn of
        // the event loop. Together, they take far less than a millisecond, which is the clock's unit.
        let turnTime = slice == nil ? session.accounting.turnTime : nil
        var now = turnTime.flatMap { resume($0.pointee) }
        defer { turnTime?.pointee = TurnTime(now: now ?? 0, workLeft: now == nil ? 0 : workLeft) }
        var lastNow: Int64?
        var count = 0
        session.thread.enter(isOnLoop: slice == nil, mayBuildLong: slice?.mayBuildLong ?? false)
        renewState()
        var skipsChecks = maySkipChecks
        var sample = (time: skipsChecks ? accounting.beginSample() : 0, first: 0)
        defer { if count > 0 { accounting.noteRun(count, lastNow, sample, outputBytes: session.pendingOutput) } }
        while !session.isClosing, !session.command.waitsForWork {
            if let execution = session.transactions.execution {
                let time = session.clock.now()
                (now, lastNow) = (nil, time)
                let runner = TransactionRunner(session, execution, mayBlock: slice != nil)
                if let pause = runner.run(now: time) { return pause }
                continue
            }
            let (isNew, pendingOutput) = (!session.command.isPending, session.pendingOutput)
            if isNew {
                if let slice {
                    if count >= slice.commandsMax || session.clock.monotonic() >= slice.until { return .sliceEnded }
                } else if count >= Limits.loopCommandsMax {
                    return .sliceEnded
                }
                if pendingOutput > outputBytesMax { return .outputFull }
                // In a long run without timing, time the rest: its commands may be faster than those of a short run.
                if sample.time == 0, count >= CommandAccounting.shortRun, skipsChecks {
                    sample = (MonotonicClock.nanoseconds(), count)
                }
                if let pause = parse() { return pause }
            }
            let time = now ?? readClock()
            (now, lastNow) = (time, time)
            var plan: EntryPlan?
            if skipsChecks, session.prechecks.mayRunInMemory(isNew: isNew, isOnLoop: slice == nil) {
                let limit = InMemoryRunner.Limit(
                    commandsMax: (slice?.commandsMax ?? Limits.loopCommandsMax) - count,
                    outputBytesMax: min(outputBytesMax, pendingOutput + Limits.loopCopyBytesMax),
                    until: slice?.until)
                let done = InMemoryRunner(session: session).run(now: time, limit, &plan)
                if done.count > 0 {
                    session.command.isPending = false
                    count += done.count
                    if workLeft <= 0 || slice != nil { now = nil }
                    continue
                }
                if done.needsDisk, slice == nil { return .cold }
            }
            now = nil
            if let pause = runCommand(plan, now: time, mayBlock: slice != nil) {
                if case .work = pause { count += 1 }
                return pause
            }
            // After MONITOR or CLIENT PAUSE, the next commands must be checked.
            skipsChecks = maySkipChecks
            count += 1
        }
        return session.isClosing ? .closing : .needsInput
    }

    /// Whether ``Prechecks`` apply. They do not cover MONITOR, CLIENT PAUSE, a low threshold of SLOWLOG, or the replay.
    private var maySkipChecks: Bool { session.prechecks.areUsed && !server.hasAttention.load(ordering: .relaxed) }

    /// Applies the changes of other threads since the last run: new rights, new origins, and CLIENT KILL.
    private func renewState() {
        session.renewRights()
        if server.origins.generation.load(ordering: .acquiring) != session.origin.generation { session.findOrigin() }
        if session.record.isKilled.load(ordering: .relaxed) { session.isClosing = true }
    }

    /// Parses the next command.
    /// - Returns: the reason to pause if there is no complete command; nil if there is one.
    private func parse() -> Pause? {
        do throws(ProtocolError) {
            guard try session.parserMemory.pointee.next() else { return .needsInput }
        } catch {
            // After a violation of the protocol, the start of the next command is unknown, so close the connection.
            session.replies.error("ERR \(error.message)")
            session.isClosing = true
            return .closing
        }
        session.command.isPending = true
        return nil
    }

    private var workLeft: Int { accounting.untimed.pointee.workLeft }

    /// Continues with the time of a turn of the event loop.
    /// - Returns: the time; nil if the clock must be read.
    @inline(__always)
    private func resume(_ time: TurnTime) -> Int64? {
        guard time.workLeft > 0 else { return nil }
        accounting.untimed.pointee.workLeft = time.workLeft
        return time.now
    }

    /// Reads the clock for the next command. The commands in memory that follow this command use the same time, until
    /// ``UntimedCounts/workLeft`` is used up.
    @inline(__always)
    private func readClock() -> Int64 {
        accounting.untimed.pointee.workLeft = UntimedCounts.workPerTime
        return session.clock.now()
    }

    /// Runs the parsed command.
    /// - Parameter plan: the command's plan, if it is known.
    /// - Returns: the reason why the command cannot run now; nil if the command has run.
    private func runCommand(_ plan: EntryPlan?, now: Int64, mayBlock: Bool) -> Pause? {
        var start = session.replyQueue.position
        var call = Call(session, server, now: now, mayBlock: mayBlock)
        var found: CommandMetadata?
        var begin: Int64?
        do throws(CommandError) {
            let command = try findCommand()
            let spec = command.metadata
            found = spec
            call.words.row = session.command.row
            try checkPermission(spec)
            if isPaused(spec) || awaitsReplay(command) { return .paused }
            try checkMode(spec)
            if session.transactions.queue != nil, !spec.flags.contains(.inMulti) {
                try enqueue(spec)
                session.endCommand(start)
                return nil
            }
            if let pause = try obstacle(spec, mayBlock: mayBlock) { return pause }
            session.command.isPending = false
            session.command.isLongQuery = false
            if session.tracking.client != nil { noteUse(spec, &start) }
            defer { if !call.isCold, !session.command.isPending { endCaching(spec) } }
            session.record.lastCommand.store(spec.number, ordering: .relaxed)
            let time = MonotonicClock.nanoseconds()
            begin = time
            let origin = OriginRunner(session: session)
            let outcome =
                if session.origin.needsCheck {
                    try origin.run(command, &call)
                } else if let plan {
                    try call.perform(plan)
                } else {
                    try command.run(&call)
                }
            switch outcome {
            case .done: break
            case .close: session.isClosing = true
            case .deferred(let work):
                session.command.waitsForWork = true
                accounting.pending = PendingNote(row: spec, command: nil, start: start)
                if !server.monitors.isEmpty { call.show(spec) }
                return .work(work)
            case .waits(let until):
                session.command.isPending = true
                return .waiting(until: until)
            }
            // As in Redis, MONITOR shows EXEC after the transaction's commands. Scripts are counted when they end.
            if session.transactions.execution == nil, !server.monitors.isEmpty { call.show(spec) }
            if session.transactions.execution?.script == nil { call.noteRun(spec, since: time, failed: false) }
        } catch {
            if call.isCold {
                // The command has had no effect. It starts again on a thread that may block.
                session.command.isPending = true
                return .cold
            }
            session.endOriginCall()
            session.waits.reply = nil
            session.command.isPending = false
            if found == nil, looksLikeHTTP {
                session.isClosing = true
                return .closing
            }
            fail(error, found, begin, call)
        }
        complete(start, call.ticket)
        return nil
    }

    /// Completes the reply of a command that has run.
    private func complete(_ start: Int, _ ticket: CommitTicket) {
        if session.modes.isSilent {
            session.replyQueue.noteSilentWrites(ticket)
        } else {
            session.replyQueue.hold(from: start, ticket)
        }
        // If the command is EXEC, its reply is complete only after its commands have run.
        if let execution = session.transactions.execution { execution.start = start } else { session.endCommand(start) }
    }

    /// Adds the current command to the transaction instead of running it.
    private func enqueue(_ spec: CommandMetadata) throws(CommandError) {
        let parser = session.parserMemory
        try session.transactions.enqueue(
            spec, count: parser.pointee.argumentCount, bytesMax: server.limits.transactionBytesMax
        ) { parser.pointee.argument($0) }
        session.record.lastCommand.store(spec.number, ordering: .relaxed)
        session.replies.raw("+QUEUED\r\n")
        session.command.isPending = false
    }

    /// For a client that tracks keys, records which keys the command reads or changes. Writes the invalidations that
    /// must precede the command's reply.
    private func noteUse(_ spec: CommandMetadata, _ start: inout Int) {
        let parser = session.parserMemory
        let changed = session.tracking.willUse(
            spec, count: parser.pointee.argumentCount, isAlone: true, after: session.replyQueue.lastTicket
        ) { parser.pointee.argument($0) }
        guard !changed.isEmpty else { return }
        PushMessage.invalidation(changed, isRedirected: false).write(to: &session.replies, isSubscriber: false)
        start = session.replyQueue.position
    }

    /// Ends the effect of CLIENT CACHING, which applies only to the next command or transaction.
    private func endCaching(_ spec: CommandMetadata) {
        if session.tracking.caching != nil, session.transactions.isIdle, !spec.flags.contains(.preservesClientCaching) {
            session.tracking.caching = nil
        }
    }

    // MARK: Errors

    /// Replies with an error.
    /// - Parameters:
    ///   - spec: the command; nil if it is unknown.
    ///   - begin: when the command began to run; nil if it was refused before it ran.
    private func fail(_ error: CommandError, _ spec: CommandMetadata?, _ begin: Int64?, _ call: Call) {
        guard let begin, let spec else { return reject(spec, error, call) }
        call.fail(error)
        if !server.monitors.isEmpty { call.show(spec) }
        call.noteRun(spec, since: begin, failed: true)
    }

    /// Replies to a command that was refused before it ran.
    private func reject(_ spec: CommandMetadata?, _ error: CommandError, _ call: Call) {
        // A command that is refused instead of being queued makes the transaction fail.
        session.transactions.queue?.isAborted = true
        if let spec, spec.flags.contains(.runsTransaction) {
            // As in Redis, the transaction is discarded if the user may not run EXEC.
            session.transactions.discard()
            call.fail(.aborted(error))
        } else {
            call.fail(error)
        }
        if let spec = spec ?? CommandTable.find(session.parser.argument(0))?.metadata {
            accounting.counter.rejected(spec.number)
        }
    }

    // MARK: Finding commands

    private func findCommand() throws(CommandError) -> CommandSpec {
        let parser = session.parserMemory
        let count = parser.pointee.argumentCount
        guard let planner = CommandTable.find(parser.pointee.argument(0), &session.commandMemory.pointee) else {
            throw unknownCommand()
        }
        let row = planner.takeUnretainedValue().row
        let spec = CommandTable.spec(row)
        guard row.accepts(argumentCount: count) else {
            guard row.flags.contains(.runsTransaction) else { throw .arity(row.name) }
            // As in Redis, discard the queued commands.
            session.transactions.discard()
            throw .aborted(.arity(row.name))
        }
        if !spec.subcommands.isEmpty, count > 1 { return try spec.subcommand(parser.pointee.argument(1), count: count) }
        return spec
    }

    /// Returns an error with the unknown name and the first arguments, each shortened as in Redis.
    private func unknownCommand() -> CommandError {
        let parser = session.parserMemory
        var arguments: [UInt8] = []
        for index in 1..<max(1, parser.pointee.argumentCount) where arguments.count < Self.shownBytesMax {
            let room = Self.shownBytesMax - arguments.count
            arguments += [UInt8(ascii: "'")] + shown(parser.pointee.argument(index), room) + Array("' ".utf8)
        }
        let name = shown(parser.pointee.argument(0), Self.shownBytesMax)
        if let subject = CommandTable.absentType(of: String(decoding: name, as: UTF8.self)) {
            arguments += Array("(there are no \(subject): Larder stores strings only)".utf8)
        }
        return CommandError("ERR unknown command '", name, "', with args beginning with: ", arguments)
    }

    private static let shownBytesMax = 128

    /// Whether the command looks like a line of HTTP. Like Redis, the daemon then closes the connection: otherwise a
    /// web page could make a browser send commands in an HTTP request.
    private var looksLikeHTTP: Bool {
        let word = session.parser.argument(0)
        return equalsIgnoringCase(word, "POST") || equalsIgnoringCase(word, "HOST:")
    }

    // MARK: Conditions

    private func checkPermission(_ spec: CommandMetadata) throws(CommandError) {
        if !session.modes.isAuthenticated, !spec.flags.contains(.noAuth) {
            throw CommandError("NOAUTH Authentication required.")
        }
        if !server.disabledCommands.isEmpty, server.disabledCommands.contains(spec) {
            throw session.rights.refuseDisabled(spec, session.transactions.queue == nil ? .toplevel : .multi)
        }
        guard session.rights.current != nil else { return }
        let queued = spec.flags.contains(.inMulti) ? nil : session.transactions.queue
        let parser = session.parserMemory
        try session.rights.check(
            spec, count: parser.pointee.argumentCount, selected: queued?.selection ?? session.database.name,
            queued == nil ? .toplevel : .multi
        ) { parser.pointee.argument($0) }
    }

    /// Whether a command must wait for the end of CLIENT PAUSE.
    private func isPaused(_ spec: CommandMetadata) -> Bool {
        guard server.hasAttention.load(ordering: .relaxed) else { return false }
        let isWrite =
            !spec.flags.isDisjoint(with: [.write, .publishes])
            || spec.flags.contains(.runsScript) && !spec.flags.contains(.readonly)
            || spec.flags.contains(.runsTransaction)
                && session.transactions.queue?.commands.contains { $0.row.flags.contains(.write) } == true
        return server.pause.holds(isWrite: isWrite, now: server.engine.monotonic())
    }

    /// Whether a command must wait, because the journal is still being replayed and the command could block. Commands
    /// that need no entries do not wait. Commands that only use entries of the selected database wait for this database.
    /// All others wait until all databases are replayed.
    private func awaitsReplay(_ command: CommandSpec) -> Bool {
        guard server.hasAttention.load(ordering: .relaxed), !server.isReplayed else { return false }
        let spec = command.metadata
        if [.connection, .pubsub].contains(spec.group) || spec == .databases { return false }
        if spec.group == .server, spec.flags.isDisjoint(with: [.write, .readonly, .noAsyncLoading]) { return false }
        return !command.planner.hasFunction || spec.database != .none || session.origin.needsCheck
            || !server.engine.isReplayed(session.database)
    }

    /// Refuses a command that is not allowed for subscribers or for MONITOR clients.
    private func checkMode(_ spec: CommandMetadata) throws(CommandError) {
        if session.isInSubscriberMode, !spec.flags.contains(.inSubscriberMode) {
            throw CommandError(
                "ERR Can't execute '\(spec.name)': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are "
                    + "allowed in this context")
        }
        // This is the error of Redis, which treats MONITOR clients like replicas.
        if !server.monitors.isEmpty, session.isMonitoring,
            !spec.flags.isDisjoint(with: [.write, .readonly, .publishes])
        {
            throw CommandError("ERR Replica can't interact with the keyspace")
        }
    }

    /// Returns the reason why a command cannot run on this thread now; nil if it can.
    private func obstacle(_ spec: CommandMetadata, mayBlock: Bool) throws(CommandError) -> Pause? {
        // Check this before the database's files are created.
        if session.origin.isOutbox { try OriginRunner.checkMayChangeOutbox(spec, count: session.parser.argumentCount) }
        let isWrite = spec.flags.contains(.write)
        if spec.flags.contains(.onLoop), mayBlock { return .sliceEnded }
        if isWrite || spec.flags.contains(.pubsub), server.pubsub.isCongested { return .congested }
        guard isWrite || !spec.flags.isDisjoint(with: [.readonly, .opens, .runsScript]) || spec == .scriptLoad,
            !spec.flags.contains(.wholeDatabase)
        else { return nil }
        if isWrite, server.engine.pipeline.isCongested { return .congested }
        if !isWrite, case .snapshot = session.view { return nil }
        if !mayBlock,
            session.parser.argumentCount > Limits.loopArgumentsMax || session.commandBytes > Limits.loopBytesMax
        {
            return .cold
        }
        // The files for a script are opened when the script runs.
        if spec.flags.contains(.runsScript) || spec == .scriptLoad { return nil }
        // If the database has no files yet, they are created only for a command that can store new entries.
        let database = session.database
        let forWriting = isWrite && (spec.flags.contains(.creates) || database.exists)
        guard !database.isReady(forWriting: forWriting) else { return nil }
        session.command.waitsForWork = true
        accounting.preparing = spec
        return .prepare(database, forWriting: forWriting)
    }
}
