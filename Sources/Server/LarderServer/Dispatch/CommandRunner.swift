import LarderCommandCatalog
import LarderEngine
import LarderPlatform
import LarderRESP

/// Finds and runs the commands of a session.
extension Session {
    // MARK: Running commands

    /// Runs the received commands until there is a reason to pause. Does not block.
    /// - Parameter outputBytesMax: no command starts while more bytes of replies than this are unsent.
    func run(outputBytesMax: Int) -> Pause { run(outputBytesMax, nil) }

    /// Runs the received commands on a thread that may block, until there is a reason to pause, or the slice is used
    /// up. Begins with the current command, if there is one.
    func runBlocking(outputBytesMax: Int, slice: Slice) -> Pause { run(outputBytesMax, slice) }

    /// Applies changes that other threads have made since the last run: rights, origins, and CLIENT KILL.
    private func renewState() {
        renewRights()
        renewOrigin()
        if record.isKilled.load(ordering: .relaxed) { isClosing = true }
    }

    private func run(_ outputBytesMax: Int, _ slice: Slice?) -> Pause {
        // Each command has its own time, but consecutive commands on the fast path use the same one. Together, they
        // take far less than a millisecond, which is the unit of time.
        var now: Int64?
        var lastNow: Int64?
        var count = 0
        isOnLoop = slice == nil
        mayBuildLong = slice?.mayBuildLong ?? false
        if mayBuildLong { needsLongThread = false }
        renewState()
        // If each command needs additional checks, do not use the fast path.
        let usesFastPath = allowsFastPath && !server.hasAttention.load(ordering: .relaxed)
        let sample = usesFastPath ? accounting.beginSample() : 0
        defer { if count > 0 { accounting.noteRun(count, lastNow, sample, outputBytes: replies.count) } }
        while !isClosing, !isWaiting {
            if let execution = transactions.execution {
                let time = clock.now()
                (now, lastNow) = (nil, time)
                if let pause = runExecution(execution, now: time, mayBlock: slice != nil) { return pause }
                continue
            }
            if !hasCommand {
                if let slice {
                    if count >= slice.commandsMax || clock.monotonic() >= slice.until { return .sliceEnded }
                } else if count >= Limits.loopCommandsMax {
                    return .sliceEnded
                }
                if pendingOutput > outputBytesMax { return .outputFull }
                if usesFastPath, takesFastGets || takesOriginGets && slice == nil, seesCurrent {
                    let time = now ?? readClock()
                    (now, lastNow) = (time, time)
                    let before = pendingOutput
                    let most = min(outputBytesMax, before + Limits.loopCopyBytesMax)
                    let done = runGets(now: time, outputBytesMax: most)
                    if done > 0 {
                        count += done
                        accounting.noteFast(.get, done)
                        accounting.fastPath.pointee.workLeft -= done + (pendingOutput - before) >> 10
                        if accounting.fastPath.pointee.workLeft <= 0 { now = nil }
                        continue
                    }
                }
                if let pause = parse() { return pause }
            }
            let time = now ?? readClock()
            (now, lastNow) = (time, time)
            if usesFastPath, takesFastPath, runOnFastPath(now: time) {
                hasCommand = false
                if accounting.fastPath.pointee.workLeft <= 0 { now = nil }
            } else {
                now = nil
                if let pause = runCommand(now: time, mayBlock: slice != nil) {
                    if case .work = pause { count += 1 }
                    return pause
                }
            }
            count += 1
        }
        return isClosing ? .closing : .needsInput
    }

    /// Parses the next command.
    /// - Returns: the reason to pause if there is no complete command; nil if there is one.
    private func parse() -> Pause? {
        do throws(ProtocolError) {
            guard try parserMemory.pointee.next() else { return .needsInput }
        } catch {
            // After a violation of the protocol, the start of the next command is unknown.
            replies.error("ERR \(error.message)")
            isClosing = true
            return .closing
        }
        hasCommand = true
        return nil
    }

    /// Reads the clock for the next command. The following commands on the fast path use the same time until their work
    /// exceeds ``FastPathCounts/workLeft``.
    @inline(__always)
    private func readClock() -> Int64 {
        accounting.fastPath.pointee.workLeft = FastPathCounts.workPerTime
        return clock.now()
    }

    /// Runs the parsed command.
    /// - Returns: the reason why it cannot run now; nil if it has run.
    private func runCommand(now: Int64, mayBlock: Bool) -> Pause? {
        var start = replyQueue.position
        var call = Call(self, server, now: now, mayBlock: mayBlock)
        var hasStarted = false
        var found: CommandMetadata?
        var begin: Int64 = 0
        do throws(CommandError) {
            let command = try findCommand()
            let spec = command.metadata
            found = spec
            try checkPermission(spec)
            if isPaused(spec) { return .paused }
            if subscription.names != nil { try checkSubscriberMode(spec) }
            if !server.monitors.isEmpty { try checkMonitoring(spec) }
            if transactions.queue != nil, !spec.flags.contains(.inMulti) {
                try enqueue(spec)
                hasCommand = false
                endCommand(start)
                return nil
            }
            if let pause = try obstacle(spec, mayBlock: mayBlock) { return pause }
            hasCommand = false
            hasStarted = true
            if modes.tracking != nil { noteUse(spec, &start) }
            defer { if !call.isCold, !hasCommand { endCaching(spec) } }
            record.lastCommand.store(spec.number, ordering: .relaxed)
            begin = MonotonicClock.nanoseconds()
            switch try origin.needsCheck ? runBeforeOrigin(command, &call) : command.run(&call) {
            case .done: break
            case .close: isClosing = true
            case .deferred(let work):
                isWaiting = true
                accounting.pending = PendingNote(row: spec, command: nil, start: start)
                if !server.monitors.isEmpty { show(spec, call) }
                return .work(work)
            case .waits(let until):
                hasCommand = true
                return .waiting(until: until)
            }
            // As in Redis, MONITOR shows EXEC after the commands it ran. Scripts are counted when they end.
            if transactions.execution == nil, !server.monitors.isEmpty { show(spec, call) }
            if transactions.execution?.script == nil {
                note(spec, call, nanoseconds: MonotonicClock.nanoseconds() - begin, failed: false)
            }
        } catch {
            if call.isCold {
                // The command has had no effect. It starts again on a thread that may block.
                hasCommand = true
                return .cold
            }
            endOriginCall()
            awaited = nil
            hasCommand = false
            if found == nil, looksLikeHTTP {
                isClosing = true
                return .closing
            }
            if hasStarted, let found {
                fail(error)
                if !server.monitors.isEmpty { show(found, call) }
                note(found, call, nanoseconds: MonotonicClock.nanoseconds() - begin, failed: true)
            } else {
                reject(found, error)
            }
        }
        if isSilent { replyQueue.noteSilentWrites(call.ticket) } else { hold(from: start, call.ticket) }
        // If the command is EXEC, its reply is complete only after its commands have run.
        if transactions.execution == nil { endCommand(start) } else { transactions.execution?.start = start }
        return nil
    }

    private func checkPermission(_ spec: CommandMetadata) throws(CommandError) {
        if !modes.isAuthenticated, !spec.flags.contains(.noAuth) {
            throw CommandError("NOAUTH Authentication required.")
        }
        if !server.disabledCommands.isEmpty, server.disabledCommands.contains(spec) {
            throw refuseDisabled(spec, transactions.queue == nil ? .toplevel : .multi)
        }
        if rights != nil { try checkRights(spec, count: parser.argumentCount) { parser.argument($0) } }
    }

    /// Replies to a command that was refused before it ran.
    private func reject(_ spec: CommandMetadata?, _ error: CommandError) {
        // A command that is refused instead of being queued makes the transaction fail.
        transactions.queue?.isAborted = true
        if let spec, spec.flags.contains(.runsTransaction) {
            // As in Redis, the transaction is discarded if the user may not run EXEC.
            transactions.discard()
            fail(.aborted(error))
        } else {
            fail(error)
        }
        if let spec = spec ?? CommandTable.find(parser.argument(0))?.metadata {
            accounting.counter.rejected(spec.number)
        }
    }

    func fail(_ error: CommandError) {
        replies.error(error.bytes)
        server.errors.count(error.bytes)
    }

    private func findCommand() throws(CommandError) -> CommandSpec {
        let word = ShortWord(parser.argument(0))
        let spec: CommandSpec
        if let lastRow, lastWord == word, word != .other {
            spec = CommandTable.spec(lastRow)
        } else {
            guard let found = CommandTable.find(word, parser.argument(0)) else { throw unknownCommand() }
            spec = found
            (lastRow, lastWord) = (found.metadata, word)
        }
        let row = spec.metadata
        guard row.accepts(argumentCount: parser.argumentCount) else {
            guard row.flags.contains(.runsTransaction) else { throw .arity(row.name) }
            // As in Redis, discard the queued commands.
            transactions.discard()
            throw .aborted(.arity(row.name))
        }
        if !spec.subcommands.isEmpty, parser.argumentCount > 1 {
            return try spec.subcommand(parser.argument(1), count: parser.argumentCount)
        }
        return spec
    }

    /// Returns an error with the unknown name and the first arguments, each shortened as in Redis.
    private func unknownCommand() -> CommandError {
        var arguments: [UInt8] = []
        for index in 1..<max(1, parser.argumentCount) where arguments.count < Self.shownBytesMax {
            let room = Self.shownBytesMax - arguments.count
            arguments += [UInt8(ascii: "'")] + shown(parser.argument(index), room) + Array("' ".utf8)
        }
        let name = shown(parser.argument(0), Self.shownBytesMax)
        if let subject = UnsupportedTypes.subject(of: String(decoding: name, as: UTF8.self)) {
            arguments += Array("(there are no \(subject): Larder stores strings only)".utf8)
        }
        return CommandError("ERR unknown command '", name, "', with args beginning with: ", arguments)
    }

    private static let shownBytesMax = 128

    /// Whether the command looks like a line of HTTP. As in Redis, the connection is closed then. Otherwise a web page
    /// could make a browser send commands to the daemon.
    private var looksLikeHTTP: Bool {
        let word = parser.argument(0)
        return equalsIgnoringCase(word, "POST") || equalsIgnoringCase(word, "HOST:")
    }

    /// Returns the reason why a command cannot run on this thread now; nil if it can.
    private func obstacle(_ spec: CommandMetadata, mayBlock: Bool) throws(CommandError) -> Pause? {
        // Check this first, so that no files are created for a command that is refused.
        if origin.isOutbox { try checkMayChangeOutbox(spec) }
        let isWrite = spec.flags.contains(.write)
        if spec.flags.contains(.onLoop), mayBlock { return .sliceEnded }
        if isWrite || spec.flags.contains(.pubsub), server.pubsub.isCongested { return .congested }
        guard isWrite || !spec.flags.isDisjoint(with: [.readonly, .opens, .runsScript]) || spec == .scriptLoad,
            !spec.flags.contains(.wholeDatabase)
        else {
            return nil
        }
        if isWrite, server.engine.pipeline.isCongested { return .congested }
        if !isWrite, case .snapshot = view { return nil }
        if !mayBlock, parser.argumentCount > Limits.loopArgumentsMax || commandBytes > Limits.loopBytesMax {
            return .cold
        }
        // The files for a script are opened when the script runs.
        if spec.flags.contains(.runsScript) || spec == .scriptLoad { return nil }
        // If the database has no files yet, they are created only for a command that can store new entries.
        let forWriting = isWrite && (spec.flags.contains(.creates) || database.exists)
        guard !database.isReady(forWriting: forWriting) else { return nil }
        isWaiting = true
        accounting.preparing = spec
        return .prepare(database, forWriting: forWriting)
    }
}
