import LarderCommandCatalog
import LarderEngine
import LarderRESP
import LarderVocabulary

extension ScriptCall {
    /// Checks the words of EVAL or a similar command, and finds the script.
    /// - Parameters:
    ///   - row: the row of the command.
    ///   - execution: the transaction of the call; nil outside of transactions.
    init(_ words: CallWords, _ row: CommandMetadata, in execution: Execution?) throws(CommandError) {
        let scripts = words.server.scripts
        var (known, isFunction): (Script?, Bool) = (nil, false)
        // Do not compare rows: that would count references, and all event loops would change the same counters.
        switch row.name {
        case "evalsha", "evalsha_ro":
            // As in Redis, report errors in this order: a text that is no digest, a wrong number of keys, an unknown
            // digest.
            guard let digest = ScriptDigest(hexadecimal: words.bytes(1)) else { throw Self.unknown }
            known = scripts.find(digest)
            if known == nil {
                _ = try Self.keyCount(words, isFunction: false)
                throw Self.unknown
            }
        case "fcall", "fcall_ro":
            isFunction = true
            known = try Self.libraries(words, execution).find(words.bytes(1))
            guard known != nil else { throw CommandError("ERR Function not found") }
        default: break
        }
        let keyCount = try Self.keyCount(words, isFunction: isFunction)
        let script: Script
        if let known { script = known } else { script = try scripts.script(words.bytes(1), .ifThereIsRoom) }
        let isReadOnly = row.flags.contains(.readonly)
        if isReadOnly, script.noWrites == false {
            throw CommandError("ERR Can not execute a script with write flag using *_ro command.")
        }
        self.init(script: script, keyCount: keyCount, isReadOnly: isReadOnly || script.noWrites == true)
    }

    /// Returns the libraries in which a call finds functions. All calls of a transaction use the same libraries.
    private static func libraries(
        _ words: CallWords, _ execution: Execution?
    ) throws(CommandError) -> FunctionLibraries.State {
        if let known = execution?.functions { return known }
        let current = try words.server.functions.current()
        execution?.functions = current
        return current
    }

    private static func keyCount(_ words: CallWords, isFunction: Bool) throws(CommandError) -> Int {
        guard let number = parseInteger(words.bytes(2)) else {
            throw isFunction ? CommandError("ERR Bad number of keys provided") : .notAnInteger
        }
        guard number <= words.count - firstKey else {
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
        guard let run, let execution = session.transactions.execution else {
            preconditionFailure("a script runs in a transaction")
        }
        server.scripts.counts.runs.wrappingAdd(1, ordering: .relaxed)
        if !server.monitors.isEmpty, let spec { show(spec) }
        var record: ScriptRecord?
        switch execution.script?.stage {
        case .replaying(let record): return try replay(record, execution, run)
        case .speculating: record = ScriptRecord(now: now, rightsGeneration: session.rights.generation)
        case .inPlace, nil: break
        }
        var host = ScriptHost(session, execution, run, now: now, isReadOnly: script.isReadOnly, record: record)
        let interpreter = try server.scripts.take()
        defer { server.scripts.give(interpreter) }
        let words = words
        func end() -> Result<Interpreter.End, CommandError> {
            Result { () throws(CommandError) in try host.run(script, words, in: interpreter) }
        }
        switch try (record.map { Jitter.repeatably($0.seed, end) } ?? end()).get() {
        case .ended(let number): throw error(ScriptEnding(rawValue: number) ?? .abandoned, script.script)
        case .replied(let reply):
            guard let record else { return try self.reply(reply) }
            record.reply = Array(reply)
            execution.script?.stage = .replaying(record)
        }
    }

    /// Replies with the encoded reply of a script. Throws if it is an error.
    private func reply(_ encoded: UnsafeRawBufferPointer) throws(CommandError) {
        guard encoded.first != UInt8(ascii: "-") else { throw CommandError(encoded: encoded) }
        session.replyMemory.pointee.raw(encoded)
    }

    private func error(_ ending: ScriptEnding, _ script: Script) -> CommandError {
        let name = script.title
        let counts = server.scripts
        switch ending {
        case .abandoned: return .scriptRestarted
        case .killed:
            counts.counts.killed.wrappingAdd(1, ordering: .relaxed)
            return CommandError("ERR Script killed by user with SCRIPT KILL... script: \(name)")
        case .timedOut:
            counts.counts.timedOut.wrappingAdd(1, ordering: .relaxed)
            let conflicts = session.transactions.execution?.script?.conflicts ?? 0
            let repeats = "it ran \(conflicts + 1) times, because other clients changed entries that it uses; "
            return CommandError(
                "ERR the script was stopped after \(server.limits.scriptMilliseconds) ms (--script-time-limit); "
                    + (conflicts > 0 ? repeats : "") + "none of its changes were applied. script: \(name)")
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
    private func replay(_ record: ScriptRecord, _ execution: Execution, _ run: TransactionRun) throws(CommandError) {
        var host = ScriptHost(session, execution, run, now: record.now, isReadOnly: false)
        let isSame =
            run.update.isAsFresh(at: session.clock.now())
            && Jitter.repeatably(record.seed) { host.replay(record) }
        guard isSame else {
            run.outdate()
            throw .scriptRestarted
        }
        try record.reply.withUnsafeBytes { bytes in
            Result { () throws(CommandError) in try reply(bytes) }
        }.get()
    }
}

extension CommandError {
    /// Thrown if a script starts again. Never sent.
    fileprivate static let scriptRestarted = CommandError("ERR script restarted")
}
