import LarderCommandCatalog
import LarderEngine
import LarderPlatform
import LarderRESP

/// Runs transactions (MULTI and EXEC) and scripts.
extension Session {

    /// Handles EXEC. ``runExecution(_:now:mayBlock:)`` then runs the queued commands.
    func beginExecution() throws(CommandError) {
        guard let queue = transactions.queue else { throw CommandError("ERR EXEC without MULTI") }
        if queue.isAborted {
            transactions.discard()
            throw CommandError("EXECABORT Transaction discarded because of previous errors.")
        }
        transactions.execution = Execution(queue.commands, watches: transactions.watches)
        // From here on, the execution owns the watches, and will end them.
        transactions.watches = []
        transactions.queue = nil
    }

    /// Runs the remaining commands of the transaction. Pauses before a command that must run on another thread.
    /// - Returns: the reason why the transaction is not complete yet; nil if it is complete.
    func runExecution(_ execution: Execution, now: Int64, mayBlock: Bool) -> Pause? {
        while execution.next < execution.commands.count || !execution.isBegun {
            var rest = execution.commands[execution.next...]
            // Run a long transaction on another thread. It holds its locks for as long, but does not delay other
            // connections.
            if !mayBlock, rest.count > server.limits.coldSliceCommands || needsScriptThread { return .cold }
            if let first = rest.first, execution.isSplit || mayBlock, rest.contains(where: Self.isOnLoop) {
                execution.isSplit = true
                if mayBlock, Self.isOnLoop(first) { return .sliceEnded }
                rest = rest.prefix { Self.isOnLoop($0) == Self.isOnLoop(first) }
            }
            let plan = TransactionPlan(
                rest, in: database, watches: execution.watches, alsoNeeded: execution.alsoNeeded,
                // If a command may still be refused, its key keeps its value: load also the values that would be
                // overwritten.
                loadsAll: server.notifier.needsPrevious || rights?.areLimited ?? false, engine: server.engine)
            if pipeline.isCongested, plan.parts.contains(where: { $0.isWritten || $0.mayBeWritten }) {
                return .congested
            }
            for part in plan.parts where !part.database.isReady(forWriting: part.needsWritableFiles) {
                isWaiting = true
                return .prepare(part.database, forWriting: part.needsWritableFiles)
            }
            if case .speculating? = execution.script?.stage {
                if speculate(execution, plan, now) { continue }
                return nil
            }
            waitForRoomToBuild()
            let start = AttemptStart(
                count: replies.count, database: database, name: name, version: replies.version,
                replyMode: modes.replyMode)
            do throws(LarderError) {
                let attempt = try self.attempt(execution, rest, plan, execution.script?.time ?? now, mayBlock)
                switch attempt.end {
                case .cold: return .cold
                case .dropped where attempt.isRefused:
                    replies.nullArray()
                    showExec(now)
                    endExecution()
                    return nil
                case .dropped:
                    undo(attempt, execution, start)
                    if mustMove(attempt, execution, mayBlock: mayBlock) { return .cold }
                case .applied(let ticket):
                    execution.isBegun = true
                    execution.endWatches()
                    execution.next = attempt.next
                    hold(attempt.regions, ticket)
                    sendPublished()
                    if let work = attempt.work {
                        isWaiting = true
                        // The command may be FUNCTION LOAD: look up the libraries again for the commands after it.
                        execution.functions = nil
                        let last = execution.commands[execution.next - 1]
                        accounting.pending = PendingNote(row: last.row, command: last, start: nil)
                        return .work(work)
                    }
                }
            } catch {
                subscription.published = []
                replies.removeLast(replies.count - start.count)
                select(start.database)
                failExecution(CommandError(error))
                return nil
            }
        }
        showExec(now)
        endExecution()
        return nil
    }

    /// The state of the session before an attempt to run commands. It is restored if the attempt is abandoned.
    private struct AttemptStart {
        let count: Int
        let database: Database
        let name: String
        let version: RESPVersion
        let replyMode: ReplyMode
    }

    /// Restores the state of the session after an abandoned attempt, so that the commands can run again.
    private func undo(_ attempt: Attempt, _ execution: Execution, _ start: AttemptStart) {
        subscription.published = []
        replies.removeLast(replies.count - start.count)
        select(start.database)
        if name != start.name { name = start.name }
        replies.version = start.version
        modes.replyMode = start.replyMode
        execution.alsoNeeded += attempt.missing
    }

    /// Whether the next attempt must run on another thread.
    private func mustMove(_ attempt: Attempt, _ execution: Execution, mayBlock: Bool) -> Bool {
        guard let script = execution.script else { return attempt.needsLongThread }
        return beginAnew(script, attempt, mayBlock: mayBlock) == .elsewhere
    }

    // MARK: Scripts

    /// Handles EVAL and similar commands outside of MULTI. The script is a transaction of its own.
    func beginScript(_ script: ScriptCall, _ call: Call) throws(CommandError) {
        var bytes = 0
        for index in 0..<call.count { bytes += call.bytes(index).count }
        guard QueuedCommand.byteCount(words: call.count, bytes: bytes) <= server.limits.transactionBytesMax else {
            throw CommandError(
                "ERR the script and its arguments are longer than \(server.limits.transactionBytesMax) bytes "
                    + "(--max-transaction)")
        }
        guard let spec = call.spec else { throw .syntax }
        let command = QueuedCommand(spec, count: call.count) { call.bytes($0) }
        transactions.execution = Execution(command, script: script)
    }

    /// Whether the running script must continue on a thread for long scripts.
    var needsScriptThread: Bool { transactions.execution?.script?.isLong ?? false }

    private enum Place {
        case here, elsewhere
    }

    /// Decides how, and on which thread, a script starts again after an abandoned attempt.
    private func beginAnew(_ script: ScriptProgress, _ attempt: Attempt, mayBlock: Bool) -> Place {
        script.repeats += 1
        server.scripts.counts.repeats.wrappingAdd(1, ordering: .relaxed)
        if attempt.needsLongThread { return .elsewhere }
        if case .replaying = script.stage {
            script.stage = .speculating
            script.conflicts += 1
            // Other clients keep changing the script's entries. Run it with locks held from now on: then they wait.
            if script.conflicts >= ScriptProgress.conflictsMax, script.lastRun <= ScriptProgress.heldRunMax {
                script.stage = .inPlace
                script.heldSlice = 2 * script.lastRun + ScriptSlice.blocking
            }
            return .here
        }
        if script.heldSlice != nil, attempt.needsScriptThread {
            script.heldSlice = nil
            script.conflicts = 0
            script.stage = .speculating
            return .here
        }
        guard attempt.needsScriptThread || script.repeats > ScriptProgress.repeatsInPlace else { return .here }
        // First let the script run longer on a thread that may block, because most slow scripts only wait for the disk.
        if attempt.needsScriptThread, !mayBlock { return .elsewhere }
        if !script.isLong {
            script.isLong = true
            script.stage = .speculating
            server.scripts.counts.longRuns.wrappingAdd(1, ordering: .relaxed)
            if let running = transactions.execution?.running { server.scripts.begin(script.killSwitch, running) }
            return .elsewhere
        }
        return .here
    }

    /// Runs a script without locks, and records its commands. If the script fails, the whole execution fails.
    /// - Returns: whether the execution can continue.
    private func speculate(_ execution: Execution, _ plan: TransactionPlan, _ now: Int64) -> Bool {
        do throws(LarderError) {
            guard let error = try record(execution, plan, now) else { return true }
            failExecution(error)
        } catch {
            failExecution(CommandError(error))
        }
        return false
    }

    /// Runs the script, and records its commands.
    /// - Returns: the error with which the script has failed; nil if the execution can continue.
    private func record(
        _ execution: Execution, _ plan: TransactionPlan, _ now: Int64
    ) throws(LarderError) -> CommandError? {
        let startCount = replies.count
        let bytesMax = server.limits.replyBytesMax
        let update = try server.engine.speculate(plan.engineParts, now: now, bytesMax: bytesMax)
        let run = TransactionRun(plan, update, loadedBytesMax: bytesMax)
        let command = execution.commands[0]
        var call = Call(self, server, now: now, mayBlock: false, command: command, run: run)
        let begin = MonotonicClock.nanoseconds()
        defer { subscription.published = [] }
        do throws(CommandError) {
            _ = try CommandTable.spec(command.row).run(&call)
        } catch {
            replies.removeLast(replies.count - startCount)
            execution.alsoNeeded += run.missing
            if !run.missing.isEmpty { return nil }
            note(command.row, call, nanoseconds: MonotonicClock.nanoseconds() - begin, failed: true)
            return error
        }
        // These keys must be locked when the recorded changes are applied.
        execution.alsoNeeded += run.loadedKeys
        return nil
    }

    /// Shows EXEC to clients that use MONITOR. EXEC is still the current command of the parser.
    private func showExec(_ now: Int64) {
        guard !server.monitors.isEmpty, parser.argumentCount == 1, transactions.execution?.script == nil else { return }
        show(.exec, Call(self, server, now: now, mayBlock: false))
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
        /// The positions of the commands' replies, counted from the first byte of the connection's output.
        var regions: [Range<Int>] = []
        /// The index of the first command that has not run.
        var next = 0
        var work: DeferredWork?
    }

    private func attempt(
        _ execution: Execution, _ commands: ArraySlice<QueuedCommand>, _ plan: TransactionPlan, _ now: Int64,
        _ mayBlock: Bool
    ) throws(LarderError) -> Attempt {
        var attempt = Attempt()
        attempt.end = try server.engine.transact(
            plan.engineParts, now: now, bytesMax: server.limits.replyBytesMax,
            mayBlock ? .mayBlock : .memoryOnly
        ) { (update) throws(LarderError) in
            guard execution.isBegun || update.watchesHold else {
                attempt.isRefused = true
                return false
            }
            if !execution.isBegun, execution.script == nil { replies.array(count: execution.commands.count) }
            let run = TransactionRun(plan, update)
            runQueued(commands, run, now, &attempt)
            attempt.missing = run.missing
            update = run.update
            attempt.needsLongThread = run.needsLongThread
            attempt.needsScriptThread = run.needsScriptThread
            return run.end(accounting.counter)
        }
        return attempt
    }

    /// Runs the commands while the locks are held. Stops after a command whose work must run on another thread.
    private func runQueued(
        _ commands: ArraySlice<QueuedCommand>, _ run: TransactionRun, _ now: Int64, _ attempt: inout Attempt
    ) {
        attempt.next = commands.startIndex
        for command in commands {
            attempt.next += 1
            let start = replyQueue.position
            var call = Call(self, server, now: now, mayBlock: false, command: command, run: run)
            willUse(command.row, count: command.count) { command[$0] }
            let begin = MonotonicClock.nanoseconds()
            var failure: CommandError?
            do throws(CommandError) {
                try checkQueued(command)
                switch try CommandTable.spec(command.row).run(&call) {
                case .done: break
                case .close: isClosing = true
                case .waits: preconditionFailure("a command that waits is not queued")
                case .deferred(let work):
                    attempt.work = work
                    return
                }
            } catch {
                failure = error
            }
            if failure != nil || command.row.flags.contains(.runsScript), run.mustBeginAgain { return }
            if let failure { fail(failure) }
            note(command.row, call, nanoseconds: MonotonicClock.nanoseconds() - begin, failed: failure != nil)
            if !server.monitors.isEmpty, !command.row.flags.contains(.runsScript) { show(command.row, call) }
            attempt.regions.append(start..<(replyQueue.position))
        }
    }

    /// Throws if a queued command is not allowed any more, because the user has lost rights since it was queued.
    func checkQueued(_ command: QueuedCommand) throws(CommandError) {
        guard rights != nil, transactions.execution?.script == nil else { return }
        do throws(CommandError) {
            try checkRights(command.row, count: command.count, in: .multi) { command[$0] }
        } catch {
            throw CommandError(
                "NOPERM ACLs rules changed between the moment the transaction was accumulated and the EXEC call. "
                    + "This command is no longer allowed for the following reason: "
                    + error.text.drop { $0 != " " }.dropFirst())
        }
    }

    /// Ends a transaction whose remaining commands cannot run. Each of them gets the error as its reply.
    func failExecution(_ error: CommandError) {
        guard let execution = transactions.execution else { return }
        if execution.isBegun {
            for _ in execution.next..<execution.commands.count { replies.error(error.bytes) }
        } else {
            replies.error(error.bytes)
        }
        endExecution()
    }

    /// Ends the transaction: releases its watches, and sends the messages that had to wait for its reply.
    func endExecution() {
        guard transactions.execution != nil else { return }
        modes.caching = nil
        if let script = transactions.execution?.script, script.isLong { server.scripts.end(script.killSwitch) }
        transactions.execution?.endWatches()
        let pushes = transactions.execution?.pushes ?? []
        let start = transactions.execution?.start
        transactions.execution = nil
        if let start { endCommand(start) }
        for message in pushes { push(message) }
    }
}
