import LarderCommandCatalog
import LarderEngine
import LarderPlatform
import LarderRESP

/// Runs a transaction of a session: the commands between MULTI and EXEC, or a script.
///
/// Used only by the session's owner.
struct TransactionRunner {
    private let session: Session
    private let execution: Execution
    private let mayBlock: Bool
    private var server: ServerState { session.server }

    init(_ session: Session, _ execution: Execution, mayBlock: Bool) {
        (self.session, self.execution, self.mayBlock) = (session, execution, mayBlock)
    }

    /// Runs the remaining commands. Pauses before a command that must run on another thread.
    /// - Returns: the reason why the transaction is not complete yet; nil if it is complete.
    func run(now: Int64) -> Pause? {
        while execution.next < execution.commands.count || !execution.isBegun {
            var rest = execution.commands[execution.next...]
            // Run a long transaction on another thread. There it does not end sooner, but delays only connections that
            // need its locks.
            if !mayBlock, rest.count > server.limits.coldSliceCommands || execution.needsScriptThread { return .cold }
            if let first = rest.first, execution.isSplit || mayBlock, rest.contains(where: Self.isOnLoop) {
                execution.isSplit = true
                if mayBlock, Self.isOnLoop(first) { return .sliceEnded }
                rest = rest.prefix { Self.isOnLoop($0) == Self.isOnLoop(first) }
            }
            // Commands that must run on the event loop use no entries, and reading some for them could need the disk.
            let useEntries = !execution.isSplit || !(rest.first.map(Self.isOnLoop) ?? false)
            let plan = TransactionPlan(
                rest, in: session.database, watches: execution.watches,
                alsoNeeded: useEntries ? execution.alsoNeeded : [],
                // If a command may be refused, also load the values that it would overwrite: a refusal leaves these
                // values unchanged.
                loadsAll: server.notifier.needsPrevious || session.rights.current?.areLimited ?? false,
                engine: server.engine)
            if let pause = obstacle(plan) { return pause }
            if case .speculating? = execution.script?.stage {
                do throws(CommandError) { try speculate(plan, now) } catch {
                    session.failExecution(error)
                    return nil
                }
                continue
            }
            session.waitForRoomToBuild()
            let start = AttemptStart(session)
            do throws(LarderError) {
                let attempt = try self.attempt(rest, plan, execution.script?.time ?? now)
                switch attempt.end {
                case .cold: return .cold
                case .dropped where attempt.isRefused:
                    session.replies.nullArray()
                    complete(now)
                    return nil
                case .dropped:
                    undo(attempt, start)
                    if mustMove(attempt) { return .cold }
                case .applied(let ticket):
                    if let pause = apply(attempt, ticket) { return pause }
                }
            } catch {
                session.subscriptions.published = []
                session.replies.removeLast(session.replies.count - start.count)
                session.select(start.database)
                session.failExecution(CommandError(error))
                return nil
            }
        }
        complete(now)
        return nil
    }

    /// Returns the reason why the commands of a plan cannot run now; nil if they can.
    private func obstacle(_ plan: TransactionPlan) -> Pause? {
        if server.engine.pipeline.isCongested, plan.parts.contains(where: { $0.isWritten || $0.mayBeWritten }) {
            return .congested
        }
        for part in plan.parts where !part.database.isReady(forWriting: part.needsWritableFiles) {
            session.command.waitsForWork = true
            return .prepare(part.database, forWriting: part.needsWritableFiles)
        }
        return nil
    }

    /// Ends the transaction after its last command. EXEC is still the current command of the parser.
    private func complete(_ now: Int64) {
        if !server.monitors.isEmpty, session.parser.argumentCount == 1, execution.script == nil {
            Call(session, server, now: now, mayBlock: false).show(.exec)
        }
        session.endExecution()
    }

    /// Makes the replies of applied commands wait for the commit of these commands.
    /// - Returns: the reason to pause before the next command; nil if it can run.
    private func apply(_ attempt: Attempt, _ ticket: CommitTicket) -> Pause? {
        execution.isBegun = true
        execution.endWatches()
        execution.next = attempt.next
        if session.modes.isSilent {
            session.replyQueue.noteSilentWrites(ticket)
        } else {
            session.replyQueue.hold(attempt.regions, ticket)
        }
        for note in attempt.notes { note() }
        for line in attempt.shown { server.monitors.show(line, except: session.unseenLines) }
        session.sendPublished()
        guard let work = attempt.work else { return nil }
        session.command.waitsForWork = true
        // The previous command may be FUNCTION LOAD. So the next commands must look up the libraries again.
        execution.functions = nil
        let last = execution.commands[execution.next - 1]
        session.accounting.pending = PendingNote(row: last.row, command: last, start: nil)
        return .work(work)
    }

    /// The state of the session before an attempt to run commands. If the attempt is abandoned, this state is restored.
    private struct AttemptStart {
        let count: Int
        let database: Database
        let name: String
        let version: RESPVersion
        let replyMode: ReplyMode

        init(_ session: Session) {
            (count, version) = (session.replies.count, session.replies.version)
            (database, name, replyMode) = (session.database, session.name, session.modes.replyMode)
        }
    }

    /// Restores the state of the session after an abandoned attempt, so that the commands can run again.
    private func undo(_ attempt: Attempt, _ start: AttemptStart) {
        session.subscriptions.published = []
        session.replies.removeLast(session.replies.count - start.count)
        session.select(start.database)
        if session.name != start.name { session.name = start.name }
        session.replies.version = start.version
        session.modes.replyMode = start.replyMode
        execution.alsoNeeded += attempt.missing
    }

    /// Decides how the commands start again after an abandoned attempt.
    /// - Returns: whether the next attempt must run on another thread.
    private func mustMove(_ attempt: Attempt) -> Bool {
        if attempt.takesLong {
            execution.readsCopies = execution.onlyReads
            return !mayBlock
        }
        guard let script = execution.script else { return attempt.needsLongThread }
        script.repeats += 1
        server.scripts.counts.repeats.wrappingAdd(1, ordering: .relaxed)
        if attempt.needsLongThread { return true }
        if case .replaying = script.stage {
            script.replayFailed()
            return false
        }
        if script.heldSlice != nil, attempt.needsScriptThread {
            script.heldSlice = nil
            script.conflicts = 0
            script.stage = .speculating
            return false
        }
        guard attempt.needsScriptThread || script.repeats > ScriptProgress.repeatsInPlace else { return false }
        // Before running without locks, try a thread that may block: most slow scripts only wait for the disk.
        if attempt.needsScriptThread, !mayBlock { return true }
        guard !script.isLong else { return false }
        script.isLong = true
        script.stage = .speculating
        server.scripts.counts.longRuns.wrappingAdd(1, ordering: .relaxed)
        if let running = execution.running { server.scripts.begin(script.killSwitch, running) }
        return true
    }

    /// Runs a script without locks, and records its commands. Throws if the script fails.
    private func speculate(_ plan: TransactionPlan, _ now: Int64) throws(CommandError) {
        let startCount = session.replies.count
        let bytesMax = server.limits.replyBytesMax
        let update = try CommandError.wrap(
            server.engine.speculate(plan.engineParts, now: now, bytesMax: bytesMax)
        ).update
        let run = TransactionRun(plan, update, loadedBytesMax: bytesMax)
        let command = execution.commands[0]
        var call = Call(session, server, now: now, mayBlock: false, command: command, run: run)
        let begin = MonotonicClock.nanoseconds()
        defer { session.subscriptions.published = [] }
        do throws(CommandError) {
            _ = try CommandTable.spec(command.row).run(&call)
        } catch {
            session.replies.removeLast(session.replies.count - startCount)
            execution.alsoNeeded += run.missing
            guard run.missing.isEmpty else { return }
            call.noteRun(command.row, since: begin, failed: true)
            throw error
        }
        // These keys must be locked when the recorded changes are applied.
        execution.alsoNeeded += run.loadedKeys
    }

    /// Whether a command must run on the event loop, even if the session is on a thread that may block.
    private static func isOnLoop(_ command: QueuedCommand) -> Bool { command.row.flags.contains(.onLoop) }

    /// The result of an attempt to run the remaining commands of a transaction.
    private struct Attempt {
        var end = TransactionEnd.cold
        /// Whether the transaction fails because a watched key has changed.
        var isRefused = false
        var missing: [TransactionMissing] = []
        var needsLongThread = false
        var needsScriptThread = false
        var takesLong = false
        /// The positions of the commands' replies, counted from the first byte of the connection's output.
        var regions: [Range<Int>] = []
        /// The index of the first command that has not run.
        var next = 0
        var work: DeferredWork?
        /// Adds the commands to the statistics. Called only if the attempt is applied.
        var notes: [() -> Void] = []
        /// The lines for clients that use MONITOR.
        var shown: [[UInt8]] = []
    }

    private func attempt(
        _ commands: ArraySlice<QueuedCommand>, _ plan: TransactionPlan, _ now: Int64
    ) throws(LarderError) -> Attempt {
        var attempt = Attempt()
        let onlyReads = execution.onlyReads
        func runCommands(on update: inout TransactionUpdate, readCostMax: Int) -> Bool {
            if !execution.isBegun, execution.script == nil { session.replies.array(count: execution.commands.count) }
            let run = TransactionRun(plan, update, readCostMax: readCostMax)
            runQueued(commands, run, now, &attempt)
            attempt.missing = run.missing
            attempt.shown = run.shown
            update = run.update
            attempt.needsLongThread = run.needsLongThread
            attempt.needsScriptThread = run.needsScriptThread
            attempt.takesLong = run.takesLong
            session.accounting.endScriptCalls(areCounted: !run.mustBeginAgain)
            return !run.mustBeginAgain
        }
        let bytesMax = server.limits.replyBytesMax
        if mayBlock, onlyReads, execution.readsCopies {
            let held = try server.engine.speculate(plan.engineParts, now: now, bytesMax: bytesMax)
            var copies = held.update
            let isComplete = runCommands(on: &copies, readCostMax: .max)
            if isComplete { copies.countReads() }
            attempt.end = isComplete ? .applied(held.ticket) : .dropped
            return attempt
        }
        // Long reads run on another thread, and without locks if nothing is written.
        let isLimited = onlyReads || !mayBlock && execution.script == nil
        attempt.end = try server.engine.transact(
            plan.engineParts, now: now, bytesMax: bytesMax, mayBlock ? .mayBlock : .memoryOnly
        ) { (update) throws(LarderError) in
            guard execution.isBegun || update.watchesHold else {
                attempt.isRefused = true
                return false
            }
            return runCommands(on: &update, readCostMax: isLimited ? Limits.loopBytesMax : .max)
        }
        return attempt
    }

    /// All replies of EXEC together are one reply.
    private func checkReplyLength(_ command: QueuedCommand) throws(CommandError) {
        let isLong = session.replyQueue.position - execution.start > server.limits.replyBytesMax
        if isLong, command.row.flags.contains(.readonly) { throw .tooLongReply(server.limits) }
    }

    /// Runs the commands, usually while the locks are held. Stops after a command whose work must run on another thread.
    private func runQueued(
        _ commands: ArraySlice<QueuedCommand>, _ run: TransactionRun, _ now: Int64, _ attempt: inout Attempt
    ) {
        attempt.next = commands.startIndex
        for command in commands {
            attempt.next += 1
            let start = session.replyQueue.position
            var call = Call(session, server, now: now, mayBlock: false, command: command, run: run)
            session.tracking.willUse(command.row, count: command.count, after: session.replyQueue.lastTicket) {
                command[$0]
            }
            let begin = MonotonicClock.nanoseconds()
            var failure: CommandError?
            do throws(CommandError) {
                if execution.script == nil {
                    try session.rights.checkAgain(command, in: session.database)
                    try checkReplyLength(command)
                }
                if session.origin.isOutbox { try OriginRunner.checkMayChangeOutbox(command.row, count: command.count) }
                switch try CommandTable.spec(command.row).run(&call) {
                case .done: break
                case .close: session.isClosing = true
                case .waits: preconditionFailure("a command that waits is not queued")
                case .deferred(let work):
                    attempt.work = work
                    return
                }
            } catch {
                failure = error
            }
            if failure == nil, !run.note(cost: session.replyQueue.position - start) { return }
            if failure != nil || command.row.flags.contains(.runsScript), run.mustBeginAgain { return }
            if let failure { session.replies.error(failure.bytes) }
            let nanoseconds = MonotonicClock.nanoseconds() - begin
            attempt.notes.append { [failure] in
                if let failure { server.errors.count(failure.bytes) }
                session.accounting.note(command.row, nanoseconds, failure != nil, command.count) { command[$0] }
            }
            if !server.monitors.isEmpty, !command.row.flags.contains(.runsScript) { call.show(command.row) }
            attempt.regions.append(start..<(session.replyQueue.position))
        }
    }
}
