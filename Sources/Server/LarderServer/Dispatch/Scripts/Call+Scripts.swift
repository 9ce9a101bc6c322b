import CLarderLuaBridge
import LarderEngine
import LarderRESP
import LarderVocabulary

extension ScriptCall {
    /// Checks the words of EVAL and similar commands, and finds the script.
    /// - Parameters:
    ///   - source: the kind of the second word.
    ///   - isReadOnly: whether the command is a read-only form such as EVAL_RO.
    init(_ call: Call, _ source: ScriptSource, isReadOnly: Bool) throws(CommandError) {
        let cache = call.server.scripts
        var known: Script?
        switch source {
        case .text: break
        case .digest:
            // As in Redis, report errors in this order: a text that is no digest, a wrong number of keys, an unknown
            // digest.
            guard let digest = ScriptDigest(hexadecimal: call.bytes(1)) else { throw Self.unknown }
            known = cache.find(digest)
            if known == nil {
                _ = try Self.keyCount(call, source)
                throw Self.unknown
            }
        case .function:
            known = try Self.libraries(call).find(call.bytes(1))
            guard known != nil else { throw CommandError("ERR Function not found") }
        }
        let count = try Self.keyCount(call, source)
        let script: Script
        if let known { script = known } else { script = try cache.script(call.bytes(1), .ifThereIsRoom) }
        if isReadOnly, script.noWrites == false {
            throw CommandError("ERR Can not execute a script with write flag using *_ro command.")
        }
        self.init(script: script, keyCount: count, isReadOnly: isReadOnly || script.noWrites == true)
    }

    /// Returns the libraries in which a call finds functions. All calls of a transaction use the same libraries.
    private static func libraries(_ call: Call) throws(CommandError) -> FunctionLibraries.State {
        let execution = call.session.transactions.execution
        if let known = execution?.functions { return known }
        let current = try call.server.functions.current()
        execution?.functions = current
        return current
    }

    private static func keyCount(_ call: Call, _ source: ScriptSource) throws(CommandError) -> Int {
        let number: Int64
        if source == .function {
            guard let parsed = parseInteger(call.bytes(2)) else {
                throw CommandError("ERR Bad number of keys provided")
            }
            number = parsed
        } else {
            number = try call.integer(2)
        }
        guard number <= call.count - firstKey else {
            throw CommandError("ERR Number of keys can't be greater than number of args")
        }
        guard number >= 0 else { throw CommandError("ERR Number of keys can't be negative") }
        return Int(number)
    }

    private static let unknown = CommandError("NOSCRIPT No matching script. Please use EVAL.")
}

extension Call {
    /// Runs a script in the transaction of this call, and writes the script's reply.
    mutating func run(_ script: ScriptCall) throws(CommandError) {
        guard let run else { preconditionFailure("a script runs in a transaction") }
        let progress = session.transactions.execution?.script
        server.scripts.counts.runs.wrappingAdd(1, ordering: .relaxed)
        if case .replaying(let record)? = progress?.stage { return try replay(record, run) }
        var record: ScriptRecord?
        if case .speculating? = progress?.stage {
            record = ScriptRecord(now: now, rightsGeneration: session.rights.generation)
        }
        let host = ScriptHost(
            session, run, now: now, isReadOnly: script.isReadOnly, progress: progress, record: record)
        defer {
            progress?.lastRun = host.duration
            if progress == nil { session.transactions.execution?.scriptTime += host.timeOfCPU }
        }
        let reply: [UInt8]
        if let record {
            let call = self
            reply = try Jitter.repeatably(record.seed) { () -> Result<[UInt8], CommandError> in
                do throws(CommandError) { return .success(try call.reply(script, host)) } catch {
                    return .failure(error)
                }
            }.get()
        } else {
            reply = try self.reply(script, host)
        }
        guard var recorded = host.record else {
            show(host)
            guard reply.first != UInt8(ascii: "-") else { throw reply.withUnsafeBytes { CommandError(encoded: $0) } }
            return session.replies.raw(reply)
        }
        recorded.reply = reply
        progress?.stage = .replaying(recorded)
    }

    /// Runs a script and returns its encoded reply. Throws if the script was stopped, for example at its time limit.
    private func reply(_ script: ScriptCall, _ host: ScriptHost) throws(CommandError) -> [UInt8] {
        let version = session.replies.version
        let interpreter = try server.scripts.take()
        defer {
            host.end()
            server.scripts.give(interpreter)
        }
        let call = self
        let count = count - ScriptCall.firstKey
        let limit = min(server.limits.replyBytesMax, server.limits.scriptMemoryMax)
        return try withUnsafeTemporaryAllocation(of: larder_script_word.self, capacity: max(1, count)) {
            (words) throws(CommandError) -> [UInt8] in
            for index in 0..<count {
                let bytes = call.bytes(ScriptCall.firstKey + index)
                words[index] = larder_script_word(bytes)
            }
            let end = try interpreter.run(
                script.script, words: UnsafeBufferPointer(start: words.baseAddress, count: count),
                keyCount: script.keyCount, version: version, replyBytesMax: limit, host: host.functions)
            switch end {
            case .replied(let reply): return Array(reply)
            case .ended(let number): throw call.error(ScriptEnding(rawValue: number) ?? .abandoned, script.script)
            }
        }
    }

    /// Sends the call, and the commands that its script has called, to clients that use MONITOR.
    private func show(_ host: ScriptHost) {
        guard !server.monitors.isEmpty, let spec else { return }
        show(spec)
        if session.record.isUnlogged.load(ordering: .relaxed) { return }
        run?.shown += host.shown
    }

    private func error(_ ending: ScriptEnding, _ script: Script) -> CommandError {
        let name = script.title
        let counts = server.scripts
        switch ending {
        case .abandoned: return CommandError("ERR script restarted")
        case .killed:
            counts.counts.killed.wrappingAdd(1, ordering: .relaxed)
            return CommandError("ERR Script killed by user with SCRIPT KILL... script: \(name)")
        case .timedOut:
            counts.counts.timedOut.wrappingAdd(1, ordering: .relaxed)
            return CommandError(
                "ERR the script was stopped after \(server.limits.scriptMilliseconds) ms (--script-time-limit); "
                    + "none of its changes were applied. script: \(name)")
        case .tooMuch:
            return CommandError(
                "ERR the commands of the script are longer than \(server.limits.transactionBytesMax) bytes "
                    + "(--max-transaction); none of its changes were applied. script: \(name)")
        case .tooLongInTransaction:
            return CommandError(
                "ERR scripts in a transaction may use \(Limits.scriptInTransactionMilliseconds) ms of CPU time in "
                    + "total; this script was stopped, but the changes that it had made were applied. script: \(name)")
        }
    }

    /// Repeats the recorded commands of a long script, with locks held. If a result differs, the script starts again.
    private mutating func replay(_ record: ScriptRecord, _ run: TransactionRun) throws(CommandError) {
        let host = ScriptHost(
            session, run, now: record.now, isReadOnly: false, progress: session.transactions.execution?.script)
        let isSame =
            run.update.isAsFresh(at: session.clock.now())
            && Jitter.repeatably(record.seed) { host.replay(record) }
        host.end()
        guard isSame else {
            run.outdate()
            throw CommandError("ERR script restarted")
        }
        show(host)
        guard record.reply.first != UInt8(ascii: "-") else {
            throw record.reply.withUnsafeBytes { CommandError(encoded: $0) }
        }
        session.replies.raw(record.reply)
    }
}
